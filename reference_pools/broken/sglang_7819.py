"""The allocator of pages forwards neither offload nor reload: both are the root's stubs."""

from __future__ import annotations

from typing import Any

from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class ForwardsNothing(PagedAllocator):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        raise NotImplementedError

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        raise NotImplementedError


FAULT = Fault(
    reports=("sglang#7819",),
    fault_class="missing-override",
    clause="allocator_forwards_the_verbs",
    make=make_token,
    kind="token",
    front=ForwardsNothing,
    allocator="token",
    program="extend r0 by 1; retract r0 as c0",
)
