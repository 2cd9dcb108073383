"""The first owner's free keeps what a second one has pinned, and unpinning frees nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_pools import KVPool
from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class UnpinFreesNothing(PagedAllocator):
    def __init__(self, pool: KVPool) -> None:
        super().__init__(pool)
        self.pinned = torch.zeros(pool.token_rows, dtype=torch.bool)

    def retain(self, ids: Tensor) -> None:
        super().retain(ids)
        self.pinned[ids.cpu()] = True

    def free(self, ids: Tensor) -> None:
        rows = self.free_list.check_in_use("ids", ids)
        unpins = self.pinned[rows] & (self.free_list.owners[rows] == 1)
        super().free(rows[~unpins])

    def clear(self) -> None:
        super().clear()
        self.pinned.zero_()


FAULT = Fault(
    reports=("LMCache#1130",),
    fault_class="allocator-leak",
    clause="shared_ids_outlive_one_owner",
    make=make_token,
    kind="token",
    front=UnpinFreesNothing,
    allocator="token",
    program="extend r0 by 5; share r0[:5] as r1; free r0; free r1",
)
