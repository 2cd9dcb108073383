"""Declares every pool that an installed package offers under the entry points `kv_pools`."""

from __future__ import annotations

import gc
from importlib.metadata import entry_points

import pytest

from conformance.allocator import Allocator
from conformance.host_tier import HostTier
from conformance.items import case_of
from conformance.pool import Family, Pool

GROUP = "kv_pools"


def pytest_kv_pools() -> list[Pool | Allocator | HostTier | Family]:
    """Each entry point is a function without arguments that returns what the hook returns."""
    return [entry for point in entry_points(group=GROUP) for entry in point.load()()]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The checks of one pool lie side by side, so that most run in one process, where they
    share what they have run."""
    items.sort(key=lambda item: getattr(case_of(item), "owner", ""))


def pytest_collection_finish() -> None:
    """Many small operations: one thread, and a collector that skips what was imported."""
    import torch

    torch.set_num_threads(1)
    gc.freeze()
