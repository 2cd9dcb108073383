"""What a run was made with."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from conformance import __version__


def environment(config: pytest.Config) -> dict[str, str]:
    """Versions, contract and device, by name."""
    return {
        "conformance": __version__,
        "contract": str(config.getini("kv_contract")),
        "device": str(config.getoption("--kv-device")),
        "torch": version("torch"),
        "hypothesis": version("hypothesis"),
        "pytest": pytest.__version__,
    }
