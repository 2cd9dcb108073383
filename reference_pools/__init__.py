"""Small, correct KV-cache pools for any device: the specification, in executable form.

Read them in this order: `base`, `rows`, `token`, `mla`, `dsa`, `state`, `hybrid`; then any of
`key_only`, `quantized`, `page_major`, `pipeline`, `draft`, `sliding_window`, `sharded`, `virtual`.
"""

from reference_pools.base import HostCopy, KVPool
from reference_pools.draft import DraftPairPool
from reference_pools.dsa import DSAPool
from reference_pools.hybrid import HybridPool
from reference_pools.key_only import KeyOnlyPool
from reference_pools.mla import MLAPool
from reference_pools.page_major import PageMajorPool
from reference_pools.pipeline import PipelinePool
from reference_pools.quantized import QuantizedPool
from reference_pools.rows import RowPool
from reference_pools.sharded import ShardedPool
from reference_pools.sliding_window import SlidingWindowPool
from reference_pools.state import StatePool
from reference_pools.token import TokenPool
from reference_pools.virtual import VirtualPool

__all__ = [
    "DSAPool",
    "DraftPairPool",
    "HostCopy",
    "HybridPool",
    "KVPool",
    "KeyOnlyPool",
    "MLAPool",
    "PageMajorPool",
    "PipelinePool",
    "QuantizedPool",
    "RowPool",
    "ShardedPool",
    "SlidingWindowPool",
    "StatePool",
    "TokenPool",
    "VirtualPool",
]
