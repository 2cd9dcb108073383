"""Slots that were taken before one could not be had belong to nobody."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_pools import HybridPool
from reference_pools.allocators import StateSlotAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_hybrid


class TakesOneByOne(StateSlotAllocator):
    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        slots = super().alloc(0, held)
        for _ in range(count):
            one = super().alloc(1)
            if one is None or slots is None:
                return None
            slots = torch.cat([slots, one])
        return slots


def front(pool: HybridPool) -> TakesOneByOne:
    return TakesOneByOne(pool.state)


FAULT = Fault(
    reports=("sglang#16067",),
    fault_class="allocator-leak",
    clause="exhaustion_changes_nothing",
    make=make_hybrid,
    kind="hybrid",
    front=front,
    allocator="slots",
    program="extend r0 by 12",
)
