"""Host rows are handed out as a slice of the tensor that lists the free ones."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_pools import TokenPool
from reference_pools.allocators import HostAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class HandsOutASlice(HostAllocator):
    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        ids = super().alloc(count, held)
        if ids is None:
            return None
        free = torch.tensor(self.free_list.free_pages, dtype=torch.int64) * self.page_size
        listed = torch.cat([ids, free])
        taken, self.still_free = listed[:count], listed[count:]
        return taken


def front(pool: TokenPool) -> HandsOutASlice:
    return HandsOutASlice(size=pool.size, page_size=pool.page_size)


FAULT = Fault(
    reports=("sglang#21624",),
    fault_class="aliasing",
    clause="ids_are_their_own_memory",
    make=make_token,
    kind="token",
    front=front,
    allocator="host",
    program="extend r0 by 5",
)
