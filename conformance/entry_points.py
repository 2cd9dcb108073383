"""Declares every pool that an installed package offers under the entry points `kv_pools`."""

from __future__ import annotations

import gc
from importlib.metadata import entry_points

from conformance.pool import Family, Pool

GROUP = "kv_pools"


def pytest_kv_pools() -> list[Pool | Family]:
    """Each entry point is a function without arguments that returns what the hook returns."""
    return [entry for point in entry_points(group=GROUP) for entry in point.load()()]


def pytest_collection_finish() -> None:
    """Many small operations: one thread, and a collector that skips what was imported."""
    import torch

    torch.set_num_threads(1)
    gc.freeze()
