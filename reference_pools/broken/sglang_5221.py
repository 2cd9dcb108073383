"""A request is cut inside a page, and the next one begins in what is left of the page."""

from __future__ import annotations

from torch import Tensor

from reference_pools.allocators import PagedAllocator
from reference_pools.allocators.free_list import Start
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class BeginsInARemainder(PagedAllocator):
    remainder = 0

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        books = self.free_list
        is_new = books.start(count, held) == Start()
        if is_new and 0 < count <= self.page_size - self.remainder and books.free_pages:
            return books.take(count, Start(self.remainder, books.free_pages.pop()))
        return super().alloc(count, held)

    def free(self, ids: Tensor) -> None:
        super().free(ids)
        self.remainder = len(ids) % self.page_size


FAULT = Fault(
    reports=("sglang#5221",),
    fault_class="page-granularity",
    clause="pages_run_slot_after_slot",
    make=make_token,
    kind="token",
    front=BeginsInARemainder,
    allocator="token",
    program="extend r0 by 1; free r0; extend r1 by 1",
)
