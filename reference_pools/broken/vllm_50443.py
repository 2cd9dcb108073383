"""Layers are counted twice where host rows are counted, so ids go past the last row."""

from __future__ import annotations

from reference_pools import TokenPool
from reference_pools.allocators import HostAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class CountsLayersTwice(HostAllocator):
    def __init__(self, *, size: int, page_size: int) -> None:
        super().__init__(size=2 * size, page_size=page_size)


def front(pool: TokenPool) -> CountsLayersTwice:
    return CountsLayersTwice(size=pool.size, page_size=pool.page_size)


FAULT = Fault(
    reports=("vllm#50443",),
    fault_class="host-pool",
    clause="ids_name_rows",
    make=make_token,
    kind="token",
    front=front,
    allocator="host",
    program="extend r0 by 30",
)
