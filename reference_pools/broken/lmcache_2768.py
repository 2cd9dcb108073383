"""Freeing looks at the first id of a list that may be empty."""

from __future__ import annotations

from torch import Tensor

from reference_pools import TokenPool
from reference_pools.allocators import HostAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class LooksAtTheFirst(HostAllocator):
    def free(self, ids: Tensor) -> None:
        self.last_freed = int(ids[0]) // self.page_size
        super().free(ids)


def front(pool: TokenPool) -> LooksAtTheFirst:
    return LooksAtTheFirst(size=pool.size, page_size=pool.page_size)


FAULT = Fault(
    reports=("LMCache#2768",),
    fault_class="bad-input",
    clause="freeing_nothing_is_legal",
    make=make_token,
    kind="token",
    front=front,
    allocator="host",
    program="extend r0 by 0; free r0",
)
