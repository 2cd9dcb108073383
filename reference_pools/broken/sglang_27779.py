"""One token that leaves the window frees the window page of all; the next one frees it again."""

from __future__ import annotations

from torch import Tensor

from conformance.adapters.plain import Plain
from reference_pools.allocators import SlidingWindowAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_sliding_window


class FreesPageByOneToken(SlidingWindowAllocator):
    def release_window(self, ids: Tensor) -> None:
        mapped, rows = self._mapped(self.full.free_list.check_in_use("ids", ids))
        window = self.window.free_list
        window.owners[rows] = 0
        window.free_pages += set((rows // self.page_size).tolist())
        self.pool.unmap_window(mapped.to(self.pool.device))


FAULT = Fault(
    reports=("sglang#27779", "sglang#27789"),
    fault_class="double-free",
    clause="mapping_dies_with_its_page",
    make=make_sliding_window,
    kind="token",
    adapter=Plain(metadata=["mapping"]),
    front=FreesPageByOneToken,
    allocator="window",
    program="extend r0 by 5; slide r0[0:1]",
)
