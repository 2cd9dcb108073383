"""A host tier for the reference pools: small, correct, and every wait in it has a name.

Read in this order: `layout`, `parts`, `pool`, `ids`, `rows`, `streams`, `waits`, `lanes`,
`direction`, `transfers`, `tier`.
"""

from reference_pools.host.ids import HostIds
from reference_pools.host.layout import HostBuffer, Layout, Row
from reference_pools.host.pool import HostPool
from reference_pools.host.tier import HostTier
from reference_pools.host.transfers import Backup, Load
from reference_pools.host.waits import POINTS, Waits

__all__ = [
    "POINTS",
    "Backup",
    "HostBuffer",
    "HostIds",
    "HostPool",
    "HostTier",
    "Layout",
    "Load",
    "Row",
    "Waits",
]
