"""The level of a block is read after the swap, so its page goes to the list of the other level."""

from __future__ import annotations

from torch import Tensor

from conformance.adapters.plain import Plain
from reference_pools.allocators import SlidingWindowAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_sliding_window


class FreesToTheOtherLevel(SlidingWindowAllocator):
    def free(self, ids: Tensor) -> None:
        full, window = self.full.free_list.free_pages, self.window.free_list.free_pages
        before = len(window)
        super().free(ids)
        full += window[before:]
        del window[before:]


FAULT = Fault(
    reports=("TensorRT-LLM#12834",),
    fault_class="ordering",
    clause="ids_are_conserved",
    make=make_sliding_window,
    kind="token",
    adapter=Plain(metadata=["mapping"]),
    front=FreesToTheOtherLevel,
    allocator="window",
    program="extend r0 by 1; free r0",
)
