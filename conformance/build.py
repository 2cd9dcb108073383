"""A new pool of one geometry, and its buffers."""

from __future__ import annotations

from typing import Any

from conformance.adapters import Adapter
from conformance.adapters.plain import PLAIN
from conformance.buffers import Inventory, take_inventory
from conformance.geometry import Geometry
from conformance.pool import Pool
from conformance.timing import timing_of


def adapter_of(pool: Pool) -> Adapter:
    return pool.adapter or PLAIN


def build_anew(pool: Pool, geometry: Geometry) -> tuple[Any, Inventory]:
    """As `build`, on a device that forgets what was before."""
    timing_of(geometry.device, "eager")
    return build(pool, geometry)


def build(pool: Pool, geometry: Geometry) -> tuple[Any, Inventory]:
    """A new pool of this geometry, and its buffers."""
    made = pool.make(geometry)
    inventory = take_inventory(made, geometry, adapter_of(pool))
    if not inventory.buffers:
        raise ValueError(
            f"Pool {pool.name!r}: {type(made).__name__} has no tensor with "
            f"{geometry.token_rows} token rows (size={geometry.size} plus one page)"
        )
    return made, inventory
