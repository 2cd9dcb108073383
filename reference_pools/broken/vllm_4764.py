"""A cached block that is taken for new tokens stays in the table of cached ones: a later
request finds it there and gets it too."""

from __future__ import annotations

from torch import Tensor

from reference_pools import KVPool
from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class StaysInTheTable(PagedAllocator):
    def __init__(self, pool: KVPool) -> None:
        super().__init__(pool)
        self.cached: set[int] = set()

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        in_use = self.free_list.owners.view(-1, self.page_size).any(1)
        hits = [page for page in self.cached if in_use[page]]
        ids = super().alloc(count, held)
        if ids is not None and count and hits and int(ids[0]) % self.page_size == 0:
            ids[: self.page_size] += hits[0] * self.page_size - int(ids[0])
        return ids

    def free(self, ids: Tensor) -> None:
        super().free(ids)
        self.cached.update((ids // self.page_size).tolist())


FAULT = Fault(
    reports=("vllm#4764",),
    fault_class="stale-state",
    clause="ids_are_handed_out_once",
    make=make_token,
    kind="token",
    front=StaysInTheTable,
    allocator="token",
    program="extend r0 by 1; free r0; extend r1 by 1; extend r2 by 1",
)
