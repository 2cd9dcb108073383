"""Whole pages, for pools that are indexed by page or by token."""

from __future__ import annotations

from torch import Tensor

from reference_pools.allocators.base import KVAllocator
from reference_pools.allocators.free_list import FreeList
from reference_pools.base import HostCopy, KVPool


class PagedAllocator(KVAllocator):
    """Pages of `pool.page_size` rows, each for one request, filled slot after slot.

    A request grows into the rest of its own last page before it takes another, so that the
    rows of a page are those of consecutive tokens. The last page may stay partly empty.
    """

    def __init__(self, pool: KVPool) -> None:
        self.pool = pool
        self.size = pool.size
        self.page_size = pool.page_size
        self.first = pool.page_size
        self.free_list = FreeList(
            size=self.size, page_size=self.page_size, first=self.first, device=pool.device
        )

    def available(self) -> int:
        return self.free_list.available()

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        return self.free_list.alloc(count, held)

    def retain(self, ids: Tensor) -> None:
        self.free_list.retain(ids)

    def free(self, ids: Tensor) -> None:
        self.free_list.free(ids)

    def begin_free_group(self) -> None:
        self.free_list.begin_free_group()

    def end_free_group(self) -> None:
        self.free_list.end_free_group()

    def clear(self) -> None:
        self.free_list.clear()

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        """Offload by the pool's own verb, with every keyword that it has."""
        return self.pool.get_cpu_copy(indices, mamba_indices=mamba_indices)

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        """Reload by the pool's own verb, with every keyword that it has."""
        self.pool.load_cpu_copy(kv_cache_cpu, indices, mamba_indices=mamba_indices)
