"""A state slot is handed out with what the request before has left in it."""

from __future__ import annotations

from torch import Tensor

from reference_pools import HybridPool
from reference_pools.allocators import StateSlotAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_hybrid


class NeverZeroes(StateSlotAllocator):
    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        return self.free_list.alloc(count, held)


def front(pool: HybridPool) -> NeverZeroes:
    return NeverZeroes(pool.state)


FAULT = Fault(
    reports=("vllm#56524",),
    fault_class="stale-state",
    clause="new_state_is_zero",
    make=make_hybrid,
    kind="hybrid",
    front=front,
    allocator="slots",
    program="extend r0 by 1",
)
