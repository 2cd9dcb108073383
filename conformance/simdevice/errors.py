"""What the simulated device raises."""

from __future__ import annotations


class SimUnavailable(RuntimeError):  # noqa: N818
    """This process cannot have the device "sim"; the message says why."""


class SimError(RuntimeError):
    """The device was used in a way that has no meaning."""


class DeviceAssert(SimError):  # noqa: N818
    """An operation failed when it ran. As on CUDA, every later call fails too, until `reset`."""
