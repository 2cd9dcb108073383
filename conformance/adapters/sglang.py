"""SGLang's pools and allocators, called as its scheduler calls them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from conformance.adapters import Locate
from conformance.adapters.plain import verb


@dataclass(frozen=True, slots=True)
class SGLang:
    """A pool, reached through the allocator that `front(pool)` returns, which forwards the
    verbs to it.

    Every optional keyword that the allocator has is passed, as `Req.offload_kv_cache` does
    in the same release (`mamba_indices` from 0.5.12 on, `req_pool_index` later). Buffers
    are found by their sizes; tables of addresses and strides are metadata. A sliding-window
    pool has two sub-pools, and finds the rows of the second by its mapping.
    """

    front: Callable[[Any], Any]
    metadata: Sequence[str] = (
        "*data_ptrs*",
        "*data_strides*",
        "*layout_*",
        "*full_to_swa_index_mapping",
    )

    def offload(self, pool: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        return _offload(self.front(pool), ids, state_ids)

    def wait(self, pool: Any, copy: Any) -> None:
        """`get_cpu_copy` ends with a wait for the whole device."""

    def reload(self, pool: Any, copy: Any, ids: Tensor, state_ids: Tensor | None) -> None:
        _reload(self.front(pool), copy, ids, state_ids)

    def move(self, pool: Any, targets: Tensor, sources: Tensor) -> None:
        verb(pool, "move_kv_cache")(targets, sources)

    def copy_state(self, pool: Any, sources: Tensor, targets: Tensor) -> None:
        verb(pool.mamba_pool, "copy_from")(sources, targets)

    def zero_state(self, pool: Any, ids: Tensor) -> None:
        verb(pool.mamba_pool, "clear_slots")(ids)

    def buffers(self, pool: Any) -> Mapping[str, Sequence[Tensor]] | None:
        if not hasattr(pool, "swa_kv_pool"):
            return None
        return {
            "k": pool.full_kv_pool.k_buffer,
            "v": pool.full_kv_pool.v_buffer,
            "window_k": pool.swa_kv_pool.k_buffer,
            "window_v": pool.swa_kv_pool.v_buffer,
        }

    def locate(self, pool: Any, name: str) -> Locate | None:
        if not name.startswith("window_"):
            return None

        def rows(ids: Tensor) -> Tensor:
            found: Tensor = pool.full_to_swa_index_mapping[ids]
            return torch.where(found > 0, found, -1)

        return rows


@dataclass(frozen=True, slots=True)
class SGLangAllocator:
    """Token, paged and sliding-window allocators, and those of mamba slots.

    Paged ones extend and decode as the scheduler does, one request at a time; where nothing
    is asked for they are not called, as there.
    """

    def available(self, allocator: Any) -> Mapping[str, int]:
        if hasattr(allocator, "swa_available_size"):
            return {
                "token": allocator.full_available_size(),
                "window": allocator.swa_available_size(),
            }
        return {"token": allocator.available_size()}

    def alloc(self, allocator: Any, count: int, held: Tensor) -> Tensor | None:
        ids: Tensor | None
        if getattr(allocator, "page_size", 1) == 1:
            ids = allocator.alloc(count)
        elif not count:
            ids = held[:0].clone()
        else:
            before, after = (torch.tensor([len(held) + more]) for more in (0, count))
            last = held[-1:] if len(held) else held.new_full((1,), -1)
            device = held.device
            if count == 1 and len(held):
                ids = allocator.alloc_decode(after.to(device), after, last)
            else:
                lengths = (before.to(device), before, after.to(device), after)
                ids = allocator.alloc_extend(*lengths, last, count)
        return ids

    def free(self, allocator: Any, ids: Tensor) -> None:
        """Tokens whose window rows are gone are freed apart, where a release has the verb."""
        mapping = self.mapping(allocator)
        if mapping is None or not hasattr(allocator, "free_full"):
            allocator.free(ids)
            return
        in_window = mapping[ids] > 0
        allocator.free_full(ids[~in_window])
        allocator.free(ids[in_window])

    def share(self, allocator: Any, ids: Tensor) -> None:
        raise NotImplementedError("pages have one owner: sharing is the radix cache's")

    def slide(self, allocator: Any, ids: Tensor) -> None:
        verb(allocator, "free_swa")(ids)

    def mapping(self, allocator: Any) -> Tensor | None:
        return getattr(allocator, "full_to_swa_index_mapping", None)

    def begin_group(self, allocator: Any) -> None:
        verb(allocator, "free_group_begin")()

    def end_group(self, allocator: Any) -> None:
        verb(allocator, "free_group_end")()

    def clear(self, allocator: Any) -> None:
        allocator.clear()

    def compact(self, allocator: Any) -> None:
        verb(allocator, "compact")()

    def translate(self, allocator: Any, ids: Tensor) -> Tensor:
        rows: Tensor = verb(allocator, "translate_kv_indices_for_transfer")(ids)
        return rows

    def offload(self, allocator: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        return _offload(allocator, ids, state_ids)

    def reload(self, allocator: Any, copy: Any, ids: Tensor, state_ids: Tensor | None) -> None:
        _reload(allocator, copy, ids, state_ids)


def _offload(allocator: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
    offload = verb(allocator, "get_cpu_copy")
    return offload(ids, **_keywords(offload, state_ids))


def _reload(allocator: Any, copy: Any, ids: Tensor, state_ids: Tensor | None) -> None:
    reload = verb(allocator, "load_cpu_copy")
    reload(copy, ids, **_keywords(reload, state_ids))


def _keywords(called: Callable[..., Any], state_ids: Tensor | None) -> dict[str, Any]:
    optional = {
        name: parameter.default
        for name, parameter in inspect.signature(called).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    return optional | {"mamba_indices": state_ids}
