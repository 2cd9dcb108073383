"""Ids that stay the same while the rows behind them move."""

from __future__ import annotations

from torch import Tensor

from reference_pools.allocators.base import KVAllocator
from reference_pools.allocators.free_list import FreeList
from reference_pools.base import HostCopy
from reference_pools.virtual import VirtualPool


class VirtualAllocator(KVAllocator):
    """Virtual ids of `pool`, in pages of `pool.page_size`.

    Every verb takes and gives virtual ids. Which physical row an id stands for is the
    pool's to say, and changes with `compact`; who owns the id does not. So the table is no
    part of the books here: `clear` leaves it alone.
    """

    def __init__(self, pool: VirtualPool) -> None:
        self.pool = pool
        self.size = pool.size
        self.page_size = pool.page_size
        self.first = pool.page_size
        self.free_list = FreeList(
            size=self.size, page_size=self.page_size, first=self.first, device=pool.device
        )

    def translate(self, ids: Tensor) -> Tensor:
        """The physical rows of `ids` now: what a transfer engine must be given.

        SGLang pull request 37416: the identity would ship the rows of other tokens.
        """
        return self.pool.translate(ids)

    def compact(self) -> None:
        """Let the pool move its rows; ids and owners stay, `translate` changes."""
        self.pool.compact()

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
