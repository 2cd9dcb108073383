"""Small, correct KV-cache pools for any device: the specification, in executable form.

Read them in this order: `base`, `token`, `mla`, `dsa`, `state`, `hybrid`.
"""

from reference_pools.base import HostCopy, KVPool
from reference_pools.dsa import DSAPool
from reference_pools.hybrid import HybridPool
from reference_pools.mla import MLAPool
from reference_pools.state import StatePool
from reference_pools.token import TokenPool

__all__ = ["DSAPool", "HostCopy", "HybridPool", "KVPool", "MLAPool", "StatePool", "TokenPool"]
