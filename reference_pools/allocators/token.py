"""Tokens one by one, for pools that are indexed by token."""

from __future__ import annotations

from torch import Tensor

from reference_pools.allocators.base import KVAllocator
from reference_pools.allocators.free_list import FreeList
from reference_pools.base import HostCopy, KVPool


class TokenAllocator(KVAllocator):
    """Any free row of `pool` beside any other: `page_size` is 1.

    The pool's own pages may be longer; its first page is reserved all the same, so ids
    begin at `pool.page_size`.
    """

    def __init__(self, pool: KVPool) -> None:
        self.pool = pool
        self.size = pool.size
        self.page_size = 1
        self.first = pool.page_size
        self.free_list = FreeList(size=self.size, page_size=1, first=self.first, device=pool.device)

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
