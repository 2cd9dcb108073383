"""Pages are taken before anybody asks whether there are enough: the list is read past its end."""

from __future__ import annotations

from torch import Tensor

from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class ReadsPastTheFreeList(PagedAllocator):
    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        books = self.free_list
        start = books.start(count, held)
        while not books.has_room(count, start):
            books.free_pages.insert(0, 1)  # behind the end lie pages that were taken before
        return books.take(count, start)


FAULT = Fault(
    reports=("sglang#34399", "sglang#30892"),
    fault_class="bad-input",
    clause="exhaustion_changes_nothing",
    make=make_token,
    kind="token",
    front=ReadsPastTheFreeList,
    allocator="token",
    program="extend r0 by 26",
)
