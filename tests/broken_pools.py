"""A broken pool or class for each clause that no public fault in the catalogue breaks."""

from __future__ import annotations

import abc
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from conformance import Family, Pool
from conformance.geometry import Geometry
from reference_pools import DSAPool, HybridPool, StatePool, TokenPool
from reference_pools.broken.sglang_25828 import DropsKeyword
from reference_pools.declarations import make_dsa, make_hybrid, make_state, make_token
from reference_pools.transfer import move_rows, offload_rows


class AlignedOnly(DSAPool):
    """Finds pages by every page_size-th id, so a run that begins inside a page loses one."""

    def pages_of(self, indices: Tensor) -> tuple[Tensor, int]:
        _, start_slot = super().pages_of(indices)
        return indices[:: self.page_size] // self.page_size, start_slot


class ZeroesOnOffload(TokenPool):
    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        self.k[0][indices] = 0
        return copy


class KeysCopiesByRows(TokenPool):
    """Knows a copy by the rows that it came from: a newer one from them replaces it."""

    def __init__(self, **geometry: Any) -> None:
        super().__init__(**geometry)
        self.held: dict[tuple[int, ...], Any] = {}

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        chunks = self.held.setdefault(tuple(indices.tolist()), {})
        chunks.update(copy.chunks)
        return replace(copy, chunks=chunks)


class SavesPagesOnce(DSAPool):
    """A part that goes on in the page where the last one ended leaves out that page's rows."""

    last, last_start = -1, 0

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        if not len(indices):
            return copy
        # Two requests begin at one slot in the programs of the suite, two parts do not.
        goes_on = int(indices[0]) == self.last + 1 and copy.start_slot not in (0, self.last_start)
        if goes_on:
            for chunks in copy.chunks["latent"]:
                chunks[0][: self.page_size - copy.start_slot] = 0
        self.last, self.last_start = int(indices[-1]), copy.start_slot
        return copy

    def load_cpu_copy(
        self, kv_cache_cpu: Any, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        self.last = -1


class SlicesRuns(TokenPool):
    """Takes ids that follow each other for a slice, which is a view of the pool."""

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        if not len(indices) or self.device.type != "cpu" or bool((indices.diff() != 1).any()):
            return copy
        run = slice(int(indices[0]), int(indices[-1]) + 1)
        return replace(copy, chunks=copy.chunks | {"k": [[layer[run]] for layer in self.k]})


class RemembersMoves(TokenPool):
    """Saves a token from where it was moved from, also when its row is another's by then."""

    def __init__(self, **geometry: Any) -> None:
        super().__init__(**geometry)
        self.moved_from: dict[int, int] = {}

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        rows = torch.tensor([self.moved_from.get(i, i) for i in indices.tolist()])
        k = [offload_rows(layer, rows, self.chunk_tokens) for layer in self.k]
        return replace(copy, chunks=copy.chunks | {"k": k})

    def move_kv_cache(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        super().move_kv_cache(tgt_loc, src_loc)
        self.moved_from.update(zip(tgt_loc.tolist(), src_loc.tolist(), strict=True))


class EmptiesTheCopy(TokenPool):
    """Takes out of a copy what it holds, and puts it back only after a reload."""

    def load_cpu_copy(
        self, kv_cache_cpu: Any, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        taken = replace(kv_cache_cpu, chunks=dict(kv_cache_cpu.chunks))
        kv_cache_cpu.chunks.clear()
        super().load_cpu_copy(taken, indices, mamba_indices)
        kv_cache_cpu.chunks.update(taken.chunks)


class MovesKeysAlone(TokenPool):
    def move_kv_cache(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        self.check_move(tgt_loc, src_loc)
        move_rows(self.k, tgt_loc, src_loc)


class ClearsSources(TokenPool):
    def move_kv_cache(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        super().move_kv_cache(tgt_loc, src_loc)
        for layer in self.k:
            layer[src_loc] = 0


class MovesAnything(TokenPool):
    def check_move(self, tgt_loc: Tensor, src_loc: Tensor) -> None: ...


class CopiesConvAlone(StatePool):
    def copy_state(self, sources: Tensor, targets: Tensor) -> None:
        temporal = self.temporal.clone()
        super().copy_state(sources, targets)
        self.temporal.copy_(temporal)


class NeedsRows(TokenPool):
    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        torch.cat(copy.chunks["k"][0])  # raises for no chunks
        return copy


class ShiftsCallersIds(TokenPool):
    """Turns ids into offsets in the tensor that its caller passed."""

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        indices.sub_(self.page_size)
        return copy


class StaysOnDevice(TokenPool):
    """On a CPU machine, `meta` stands for a device."""

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        return replace(copy, chunks=copy.chunks | {"staging": [[indices.to("meta")]]})


class CopiesThePool(TokenPool):
    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        whole = [[layer.clone()] for layer in self.k]
        return replace(copy, chunks=copy.chunks | {"whole": whole})


class ForgetsToDeclare(TokenPool):
    def __init__(self, **geometry: Any) -> None:
        super().__init__(**geometry)
        self.k_scale = self.allocate(1)


class ClearsState(HybridPool):
    def load_cpu_copy(
        self, kv_cache_cpu: Any, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        if mamba_indices is None:
            self.state.conv[:, -1] = 0


class IgnoresState(TokenPool):
    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> Any:
        return super().get_cpu_copy(indices)

    def load_cpu_copy(
        self, kv_cache_cpu: Any, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        super().load_cpu_copy(kv_cache_cpu, indices)


class IgnoresMismatch(HybridPool):
    def load_cpu_copy(
        self, kv_cache_cpu: Any, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        if (kv_cache_cpu.state is None) == (mamba_indices is None):
            super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        else:
            self.attention.load_cpu_copy(kv_cache_cpu, indices)


class AcceptsIds(TokenPool):
    """Takes the ids that `accepts` names for others that are legal."""

    accepts: str

    def check_tokens(self, indices: Tensor) -> None:
        if self.accepts == "float" and indices.is_floating_point():
            return
        wrong = {
            "past": indices >= self.token_rows,
            "negative": indices < 0,
            "reserved": (indices >= 0) & (indices < self.page_size),
        }.get(self.accepts, indices != indices)
        super().check_tokens(indices[~wrong])

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> Any:
        self.check_tokens(indices)
        return super().get_cpu_copy(self.legal(indices), mamba_indices)

    def load_cpu_copy(
        self, kv_cache_cpu: Any, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        self.check_tokens(indices)
        super().load_cpu_copy(kv_cache_cpu, self.legal(indices), mamba_indices)

    def legal(self, indices: Tensor) -> Tensor:
        return indices.long().clamp(self.page_size, self.token_rows - 1)


class AcceptsPast(AcceptsIds):
    accepts = "past"


class AcceptsNegative(AcceptsIds):
    accepts = "negative"


class AcceptsReserved(AcceptsIds):
    accepts = "reserved"


class AcceptsFloat(AcceptsIds):
    accepts = "float"


class AcceptsTwice(TokenPool):
    def check_tokens(self, indices: Tensor) -> None:
        super().check_tokens(torch.unique(indices))


def _token(name: str, cls: type[TokenPool], **more: Any) -> Pool:
    return Pool(name, partial(make_token, cls=cls), kind="token", level="strict", **more)


def _half_copied(geometry: Geometry) -> HybridPool:
    return HybridPool(make_token(geometry), make_state(geometry, cls=CopiesConvAlone))


POOLS: dict[str, Pool] = {
    "resume_restores_the_request": _token("remembers-moves", RemembersMoves),
    "copy_is_its_own_memory": _token("slices-runs", SlicesRuns),
    "copy_survives_a_refusal": _token("empties-the-copy", EmptiesTheCopy),
    "move_carries_the_payload": _token("moves-keys-alone", MovesKeysAlone),
    "move_leaves_other_rows_alone": _token("clears-sources", ClearsSources),
    "illegal_move_is_refused": _token("moves-anything", MovesAnything),
    "duplicate_ids_are_refused": _token("accepts-twice", AcceptsTwice),
    "state_copy_copies_every_buffer": Pool(
        "half-copied", _half_copied, kind="hybrid", level="strict"
    ),
    "runs_may_begin_mid_page": Pool(
        "aligned-only", partial(make_dsa, cls=AlignedOnly), kind="dsa", level="strict"
    ),
    "offload_changes_nothing": _token("zeroes-on-offload", ZeroesOnOffload),
    "copies_are_independent": _token("keys-copies-by-rows", KeysCopiesByRows),
    "splitting_gives_the_whole": Pool(
        "saves-pages-once", partial(make_dsa, cls=SavesPagesOnce), kind="dsa", level="strict"
    ),
    "empty_set_is_legal": _token("needs-rows", NeedsRows),
    "index_tensors_are_not_modified": _token("shifts-ids", ShiftsCallersIds),
    "copy_is_on_the_host": _token("stays-on-device", StaysOnDevice),
    "copy_size_is_bounded": _token("copies-the-pool", CopiesThePool),
    "every_tensor_is_accounted_for": _token("forgets-to-declare", ForgetsToDeclare),
    "state_stays_without_ids": Pool(
        "clears-state", partial(make_hybrid, cls=ClearsState), kind="hybrid", level="strict"
    ),
    "state_is_refused_not_dropped": _token("ignores-state", IgnoresState),
    "state_mismatch_is_refused": Pool(
        "ignores-mismatch", partial(make_hybrid, cls=IgnoresMismatch), kind="hybrid", level="strict"
    ),
    "out_of_range_ids_are_refused": _token("accepts-past", AcceptsPast),
    "negative_ids_are_refused": _token("accepts-negative", AcceptsNegative),
    "reserved_rows_are_refused": _token("accepts-reserved", AcceptsReserved),
    "wrong_dtype_is_refused": _token("accepts-float", AcceptsFloat),
    "lacks_is_refused_first": _token("lacks-nothing", TokenPool, lacks=["offload"]),
}


class Root(abc.ABC):
    """The root of a family whose classes each break one signature clause."""

    @abc.abstractmethod
    def name(self) -> str: ...

    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any: ...

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> Any: ...


class KeywordOnly(Root):
    def get_cpu_copy(self, indices: Any, *, mamba_indices: Any = None) -> Any: ...


class RequiresStream(Root):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None, *, stream: Any) -> Any: ...


class HalfAKeyword(Root):
    def get_cpu_copy(
        self, indices: Any, mamba_indices: Any = None, req_pool_index: Any = None
    ) -> Any: ...


class RenamesParameter(Root):
    def load_cpu_copy(self, cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> Any: ...


class ChangesDefault(Root):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = ()) -> Any: ...


class NotCovered(Root):
    def name(self) -> str:
        return "concrete"


CLASSES: dict[str, type] = {
    "override_accepts_every_keyword": DropsKeyword,
    "override_binds_by_position": KeywordOnly,
    "override_requires_nothing_more": RequiresStream,
    "pair_accepts_the_same_keywords": HalfAKeyword,
    "override_keeps_names": RenamesParameter,
    "override_keeps_defaults": ChangesDefault,
    "every_subclass_is_covered": NotCovered,
}


def family(root: type = Root) -> Family:
    """The family of these classes, which live in this module."""
    return Family(root, verbs=("get_cpu_copy", "load_cpu_copy"), level="strict")
