"""Freeing rounds to whole pages the wrong way: a page that is filled in part never comes back."""

from __future__ import annotations

from torch import Tensor

from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class FreesFullPages(PagedAllocator):
    def free(self, ids: Tensor) -> None:
        rows = self.free_list.check_in_use("ids", ids)
        super().free(rows[: len(rows) - len(rows) % self.page_size])


FAULT = Fault(
    reports=("sglang#4977",),
    fault_class="page-granularity",
    clause="ids_are_conserved",
    make=make_token,
    kind="token",
    front=FreesFullPages,
    allocator="token",
    program="extend r0 by 1; free r0",
)
