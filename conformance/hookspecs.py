"""The hook that a downstream implements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from conformance.pool import Family, Pool


def pytest_kv_pools(config: pytest.Config) -> Sequence[Pool | Family]:  # type: ignore[empty-body]
    """Return the pools and families to check; every implementation's list is used."""
