"""The fixture of every test on the simulated device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance import simdevice


@pytest.fixture(autouse=True)
def sim_device() -> Iterator[None]:
    """Each test begins with nothing queued, under the lazy schedule."""
    simdevice.enable()
    simdevice.reset()
    yield
    simdevice.reset()
