"""Blocks that a sequence gets after its first ones are not tracked, and removal forgets them."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_pools import KVPool
from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class TracksTheFirstBlocks(PagedAllocator):
    def __init__(self, pool: KVPool) -> None:
        super().__init__(pool)
        self.tracked = torch.zeros(pool.token_rows, dtype=torch.bool)

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        ids = super().alloc(count, held)
        if ids is not None:
            self.tracked[ids.cpu()] = held is None or not len(held)
        return ids

    def free(self, ids: Tensor) -> None:
        rows = self.free_list.check_in_use("ids", ids)
        super().free(rows[self.tracked[rows]])


FAULT = Fault(
    reports=("TensorRT-LLM#15018",),
    fault_class="allocator-leak",
    clause="ids_are_conserved",
    make=make_token,
    kind="token",
    front=TracksTheFirstBlocks,
    allocator="token",
    program="extend r0 by 1; extend r0 by 1; free r0",
)
