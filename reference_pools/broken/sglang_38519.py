"""Freeing does not skip the tokens whose window row is gone: the reserved page 0 comes back."""

from __future__ import annotations

from torch import Tensor

from conformance.adapters.plain import Plain
from reference_pools.allocators import SlidingWindowAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_sliding_window


class FreesUnmappedRows(SlidingWindowAllocator):
    def free(self, ids: Tensor) -> None:
        mapped, _ = self._mapped(self.full.free_list.check_in_use("ids", ids))
        super().free(ids)
        if len(mapped) < len(ids):
            self.window.free_list.free_pages.append(0)


FAULT = Fault(
    reports=("sglang#38519",),
    fault_class="double-free",
    clause="mapping_dies_with_its_page",
    make=make_sliding_window,
    kind="token",
    adapter=Plain(metadata=["mapping"]),
    front=FreesUnmappedRows,
    allocator="window",
    program="extend r0 by 5; slide r0[0:5]; free r0",
)
