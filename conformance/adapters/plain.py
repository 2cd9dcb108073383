"""The default adapters: SGLang's names for a pool's verbs, the plainest ones for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from conformance.adapters import Locate


@dataclass(frozen=True, slots=True)
class Plain:
    """`get_cpu_copy(ids, mamba_indices=...)` and `load_cpu_copy(copy, ids, mamba_indices=...)`.

    The keyword is always passed, as SGLang's scheduler does (sglang PR 27645). A pool
    declares its buffers by a method `buffers()`, or they are found by their sizes; one whose
    rows are not the ids says which they are by `locate(name, ids)`.
    """

    metadata: Sequence[str] = ()

    def offload(self, pool: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        return pool.get_cpu_copy(ids, mamba_indices=state_ids)

    def wait(self, pool: Any, copy: Any) -> None:
        """`get_cpu_copy` waits itself."""

    def reload(self, pool: Any, copy: Any, ids: Tensor, state_ids: Tensor | None) -> None:
        pool.load_cpu_copy(copy, ids, mamba_indices=state_ids)

    def move(self, pool: Any, targets: Tensor, sources: Tensor) -> None:
        verb(pool, "move_kv_cache")(targets, sources)

    def copy_state(self, pool: Any, sources: Tensor, targets: Tensor) -> None:
        verb(pool, "copy_state")(sources, targets)

    def zero_state(self, pool: Any, ids: Tensor) -> None:
        verb(pool, "zero_state")(ids)

    def buffers(self, pool: Any) -> Mapping[str, Sequence[Tensor]] | None:
        declared = getattr(pool, "buffers", None)
        return declared() if callable(declared) else None

    def locate(self, pool: Any, name: str) -> Locate | None:
        locate = getattr(pool, "locate", None)
        if locate is None or locate(name, torch.empty(0, dtype=torch.int64)) is None:
            return None
        return partial(locate, name)


@dataclass(frozen=True, slots=True)
class PlainAllocator:
    """`alloc(count, held)`, `free(ids)`, `retain(ids)`, `clear()`, and free groups."""

    def available(self, allocator: Any) -> Mapping[str, int]:
        if hasattr(allocator, "available_window"):
            return {
                "token": allocator.available_full(),
                "window": allocator.available_window(),
            }
        return {"token": allocator.available()}

    def alloc(self, allocator: Any, count: int, held: Tensor) -> Tensor | None:
        ids: Tensor | None = allocator.alloc(count, held)
        return ids

    def free(self, allocator: Any, ids: Tensor) -> None:
        allocator.free(ids)

    def share(self, allocator: Any, ids: Tensor) -> None:
        verb(allocator, "retain")(ids)

    def slide(self, allocator: Any, ids: Tensor) -> None:
        verb(allocator, "release_window")(ids)

    def mapping(self, allocator: Any) -> Tensor | None:
        return getattr(getattr(allocator, "pool", None), "mapping", None)

    def begin_group(self, allocator: Any) -> None:
        verb(allocator, "begin_free_group")()

    def end_group(self, allocator: Any) -> None:
        verb(allocator, "end_free_group")()

    def clear(self, allocator: Any) -> None:
        allocator.clear()

    def compact(self, allocator: Any) -> None:
        verb(allocator, "compact")()

    def translate(self, allocator: Any, ids: Tensor) -> Tensor:
        rows: Tensor = verb(allocator, "translate")(ids)
        return rows

    def offload(self, allocator: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        return verb(allocator, "get_cpu_copy")(ids, mamba_indices=state_ids)

    def reload(self, allocator: Any, copy: Any, ids: Tensor, state_ids: Tensor | None) -> None:
        verb(allocator, "load_cpu_copy")(copy, ids, mamba_indices=state_ids)


@dataclass(frozen=True, slots=True)
class PlainHostTier:
    """`backup(ids, state_ids)` and `load(backup, ids, state_ids)`, which return something with
    `wait()`, `done`, and for a load `wait_layer(layer)`; `free(backup)`, `available()` and
    `row_bytes()`."""

    def backup(self, tier: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        return tier.backup(ids, state_ids)

    def load(self, tier: Any, backup: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        return tier.load(backup, ids, state_ids)

    def wait(self, tier: Any, transfer: Any) -> None:  # noqa: ARG002
        transfer.wait()

    def is_done(self, tier: Any, transfer: Any) -> bool:  # noqa: ARG002
        done = getattr(transfer, "done", None)
        if done is None:
            raise NotImplementedError(f"{type(transfer).__name__} has no done")
        return bool(done)

    def wait_layer(self, tier: Any, load: Any, layer: int) -> None:  # noqa: ARG002
        verb(load, "wait_layer")(layer)

    def free(self, tier: Any, backup: Any) -> None:
        tier.free(backup)

    def available(self, tier: Any) -> Mapping[str, int]:
        rows: Mapping[str, int] = tier.available()
        return rows

    def row_bytes(self, tier: Any) -> Mapping[str, int]:
        widths: Mapping[str, int] = verb(tier, "row_bytes")()
        return widths


def verb(owner: Any, name: str) -> Callable[..., Any]:
    """The method; `NotImplementedError` where `owner` has none of this name."""
    method: Callable[..., Any] | None = getattr(owner, name, None)
    if method is None:
        raise NotImplementedError(f"{type(owner).__name__} has no {name}")
    return method


PLAIN = Plain()
PLAIN_ALLOCATOR = PlainAllocator()
PLAIN_HOST_TIER = PlainHostTier()
