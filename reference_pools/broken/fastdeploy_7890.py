"""Blocks that are taken out of the reserve, when nothing else is left, never come back."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_pools import KVPool
from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class LosesTheReserve(PagedAllocator):
    def __init__(self, pool: KVPool) -> None:
        super().__init__(pool)
        self.reserve = torch.zeros(pool.token_rows, dtype=torch.bool)

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        ids = super().alloc(count, held)
        if ids is not None:
            unused = self.size - int(self.free_list.owners.count_nonzero())
            self.reserve[ids.cpu()] = unused < self.page_size
        return ids

    def free(self, ids: Tensor) -> None:
        rows = self.free_list.check_in_use("ids", ids)
        super().free(rows[~self.reserve[rows]])


FAULT = Fault(
    reports=("FastDeploy#7890",),
    fault_class="allocator-leak",
    clause="ids_are_conserved",
    make=make_token,
    kind="token",
    front=LosesTheReserve,
    allocator="token",
    program="extend r0 by 25; free r0",
)
