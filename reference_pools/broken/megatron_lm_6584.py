"""A slot is handed out as a view of the stack of free slots, which a later free rewrites."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_pools import HybridPool, StatePool
from reference_pools.allocators import StateSlotAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_hybrid


class HandsOutItsStack(StateSlotAllocator):
    def __init__(self, state: StatePool) -> None:
        super().__init__(state)
        self.stack = torch.empty(state.size, dtype=torch.int64, device=state.device)

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        slots = super().alloc(count, held)
        if slots is None:
            return None
        top = self.available()
        self.stack[top : top + count] = slots
        return self.stack[top : top + count]

    def free(self, ids: Tensor) -> None:
        freed, top = ids.clone(), self.available()
        super().free(ids)
        count = self.available() - top
        self.stack[top : top + count] = freed[:count]


def front(pool: HybridPool) -> HandsOutItsStack:
    return HandsOutItsStack(pool.state)


FAULT = Fault(
    reports=("Megatron-LM#6584",),
    fault_class="aliasing",
    clause="ids_keep_their_values",
    make=make_hybrid,
    kind="hybrid",
    front=front,
    allocator="slots",
    level="required",
    program="extend r0 by 1; extend r1 by 1; free r0",
)
