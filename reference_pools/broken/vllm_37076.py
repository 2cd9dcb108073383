"""The request that takes the last free block is given one of another request instead."""

from __future__ import annotations

from torch import Tensor

from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class EvictsWhatIsInUse(PagedAllocator):
    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        in_use = self.free_list.owners.view(-1, self.page_size).any(1)
        ids = super().alloc(count, held)
        if ids is None or not count or self.available() or not in_use.any():
            return ids
        if int(ids[0]) % self.page_size == 0:
            ids[: self.page_size] += int(in_use.nonzero()[0]) * self.page_size - int(ids[0])
        return ids


FAULT = Fault(
    reports=("vllm#37076",),
    fault_class="other",
    clause="ids_are_handed_out_once",
    make=make_token,
    kind="token",
    front=EvictsWhatIsInUse,
    allocator="token",
    program="extend r0 by 1; extend r1 by 20",
)
