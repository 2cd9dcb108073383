"""Who hands out the ids of rows: one small, correct allocator for each kind of pool.

Read them in this order: `base`, `free_list`, `token`, `paged`, `state_slots`, `host`,
`virtual`, `sliding_window`.
"""

from reference_pools.allocators.base import KVAllocator
from reference_pools.allocators.free_list import FreeList
from reference_pools.allocators.host import HostAllocator
from reference_pools.allocators.paged import PagedAllocator
from reference_pools.allocators.sliding_window import SlidingWindowAllocator
from reference_pools.allocators.state_slots import StateSlotAllocator
from reference_pools.allocators.token import TokenAllocator
from reference_pools.allocators.virtual import VirtualAllocator

__all__ = [
    "FreeList",
    "HostAllocator",
    "KVAllocator",
    "PagedAllocator",
    "SlidingWindowAllocator",
    "StateSlotAllocator",
    "TokenAllocator",
    "VirtualAllocator",
]
