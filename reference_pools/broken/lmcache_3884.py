"""Whoever shares what is cached takes one reference more than it ever gives back."""

from __future__ import annotations

from torch import Tensor

from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class RetainsTwice(PagedAllocator):
    def retain(self, ids: Tensor) -> None:
        super().retain(ids)
        super().retain(ids)


FAULT = Fault(
    reports=("LMCache#3884",),
    fault_class="allocator-leak",
    clause="shared_ids_outlive_one_owner",
    make=make_token,
    kind="token",
    front=RetainsTwice,
    allocator="token",
    program="extend r0 by 5; share r0[:5] as r1; free r0; free r1",
)
