"""Names of devices."""

from __future__ import annotations


def is_simulated(device: str) -> bool:
    """Whether it is the one whose operations finish as a schedule says."""
    return device.partition(":")[0] == "sim"
