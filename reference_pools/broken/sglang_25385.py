"""A freed token keeps its entry in the window mapping, which soon names another's row."""

from __future__ import annotations

from torch import Tensor

from conformance.adapters.plain import Plain
from reference_pools.allocators import SlidingWindowAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_sliding_window


class KeepsMapping(SlidingWindowAllocator):
    def _release(self, ids: Tensor, rows: Tensor) -> None:
        self.window.free(rows)


FAULT = Fault(
    reports=("sglang#25385",),
    fault_class="stale-state",
    clause="mapping_dies_with_its_page",
    make=make_sliding_window,
    kind="token",
    adapter=Plain(metadata=["mapping"]),
    front=KeepsMapping,
    allocator="window",
    program="extend r0 by 1; free r0",
)
