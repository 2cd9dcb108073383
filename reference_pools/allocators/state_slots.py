"""Slots of recurrent state: one per request, empty when handed out."""

from __future__ import annotations

from torch import Tensor

from reference_pools.allocators.base import KVAllocator
from reference_pools.allocators.free_list import FreeList
from reference_pools.state import StatePool


class StateSlotAllocator(KVAllocator):
    """Rows of `state`, whose row 0 takes padded writes and is not handed out.

    Recurrent state is read before it is first written, so a slot comes with zeros in every
    buffer (vLLM issue 56524). They are written when the slot is handed out, not when it is
    freed: a kernel that is still running may write to a slot after its request is gone.
    `held` is checked and otherwise of no account: slots have no order.
    """

    def __init__(self, state: StatePool) -> None:
        self.state = state
        self.size = state.size
        self.page_size = 1
        self.first = 1
        self.free_list = FreeList(
            size=self.size, page_size=1, first=self.first, device=state.device
        )

    def available(self) -> int:
        return self.free_list.available()

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        """As `KVAllocator.alloc`; the rows of the new slots are zero in every buffer and layer."""
        slots = self.free_list.alloc(count, held)
        if slots is not None:
            self.state.zero_state(slots)
        return slots

    def retain(self, ids: Tensor) -> None:
        self.free_list.retain(ids)

    def free(self, ids: Tensor) -> None:
        self.free_list.free(ids)

    def begin_free_group(self) -> None:
        self.free_list.begin_free_group()

    def end_free_group(self) -> None:
        self.free_list.end_free_group()

    def clear(self) -> None:
        """As `KVAllocator.clear`; state rows keep what they hold until they are handed out."""
        self.free_list.clear()
