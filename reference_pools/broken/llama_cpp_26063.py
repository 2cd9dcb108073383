"""A restore sends the search for free rows back to the first one, over the restored rows."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class SearchesAnew(PagedAllocator):
    head = 0

    def load_cpu_copy(
        self, kv_cache_cpu: Any, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        self.head = int(indices[0])

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        in_use = bool(self.free_list.owners[self.head])
        ids = super().alloc(count, held)
        if ids is not None and count and in_use and int(ids[0]) % self.page_size == 0:
            ids[: self.page_size] += self.head - int(ids[0])
        return ids


FAULT = Fault(
    reports=("llama.cpp#26063",),
    fault_class="stale-state",
    clause="ids_are_handed_out_once",
    make=make_token,
    kind="token",
    front=SearchesAnew,
    allocator="token",
    program="extend r0 by 1; retract r0 as c0; resume r1 from c0; extend r2 by 1",
)
