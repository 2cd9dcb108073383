"""Of the state slots that are freed in one call, the first alone comes back."""

from __future__ import annotations

from torch import Tensor

from reference_pools import HybridPool
from reference_pools.allocators import StateSlotAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_hybrid


class FreesTheFirst(StateSlotAllocator):
    def free(self, ids: Tensor) -> None:
        super().free(self.free_list.check_in_use("ids", ids)[:1])


def front(pool: HybridPool) -> FreesTheFirst:
    return FreesTheFirst(pool.state)


FAULT = Fault(
    reports=("sglang#20010",),
    fault_class="allocator-leak",
    clause="ids_are_conserved",
    make=make_hybrid,
    kind="hybrid",
    front=front,
    allocator="slots",
    program="extend r0 by 3; free r0",
)
