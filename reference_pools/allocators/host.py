"""Rows of host memory, for pages that were backed up there."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_pools.allocators.base import KVAllocator
from reference_pools.allocators.free_list import FreeList


class HostAllocator(KVAllocator):
    """Whole pages of host rows. Ids are `0 .. size - 1`, on the CPU.

    No kernel pads its writes on the host, so no row is reserved and ids begin at 0.
    A page is backed up as a whole: `count` is a number of whole pages, and `held` is checked
    but never continued.
    """

    def __init__(self, *, size: int, page_size: int) -> None:
        """`ValueError` for a size that is not a positive number of pages."""
        self.size = size
        self.page_size = page_size
        self.first = 0
        self.free_list = FreeList(
            size=size, page_size=page_size, first=self.first, device=torch.device("cpu")
        )

    def available(self) -> int:
        return self.free_list.available()

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        """As `KVAllocator.alloc`, and `ValueError` for a count that is not whole pages."""
        if count > 0 and count % self.page_size:
            raise ValueError(f"count {count} is not a multiple of page_size {self.page_size}")
        if held is not None:
            self.free_list.check_in_use("held", held)
        return self.free_list.alloc(count)

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
