"""Clear frees what is in use once for each of its owners."""

from __future__ import annotations

from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class ClearsPerOwner(PagedAllocator):
    def clear(self) -> None:
        shared = (self.free_list.owners > 1).nonzero().flatten()
        super().clear()
        self.free_list.free_pages += set((shared // self.page_size).tolist())


FAULT = Fault(
    reports=("LMCache#993",),
    fault_class="double-free",
    clause="clear_resets_everything",
    make=make_token,
    kind="token",
    front=ClearsPerOwner,
    allocator="token",
    program="extend r0 by 5; share r0[:5] as r1; clear",
)
