"""A simulated accelerator: the torch device "sim", whose copies and kernels finish late.

Its tensors lie in CPU memory. What is queued on a stream runs only when something waits for
it, in an order that a schedule chooses, so a missing wait shows on a machine without a GPU.

`enable()` registers the device in this process; before that, nothing here has any effect.
Importing this package does not import torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from conformance.simdevice.errors import DeviceAssert, SimError, SimUnavailable

if TYPE_CHECKING:
    from conformance.simdevice.accounting import (
        limit_memory,
        max_memory_allocated,
        mem_get_info,
        memory_allocated,
        reset_peak_memory_stats,
    )
    from conformance.simdevice.control import choosing, reset, schedule_text
    from conformance.simdevice.diagnosis import Pending, pending
    from conformance.simdevice.hazards import Hazard, watching
    from conformance.simdevice.shimming import shims
    from conformance.simdevice.streams import (
        Event,
        Stream,
        current_stream,
        default_stream,
        set_stream,
        stream,
        synchronize,
    )
    from conformance.simdevice.tasks import Handle, defer

__all__ = [
    "DeviceAssert",
    "Event",
    "Handle",
    "Hazard",
    "Pending",
    "SimError",
    "SimUnavailable",
    "Stream",
    "choosing",
    "current_stream",
    "default_stream",
    "defer",
    "enable",
    "is_enabled",
    "limit_memory",
    "max_memory_allocated",
    "mem_get_info",
    "memory_allocated",
    "pending",
    "reset",
    "reset_peak_memory_stats",
    "schedule_text",
    "set_stream",
    "shims",
    "stream",
    "synchronize",
    "watching",
]

_HOMES = {
    "accounting": (
        "limit_memory",
        "max_memory_allocated",
        "mem_get_info",
        "memory_allocated",
        "reset_peak_memory_stats",
    ),
    "control": ("choosing", "reset", "schedule_text"),
    "diagnosis": ("Pending", "pending"),
    "hazards": ("Hazard", "watching"),
    "shimming": ("shims",),
    "streams": (
        "Event",
        "Stream",
        "current_stream",
        "default_stream",
        "set_stream",
        "stream",
        "synchronize",
    ),
    "tasks": ("Handle", "defer"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_enabled = False


def enable() -> None:
    """Register the device "sim" in this process, once; it cannot be undone.

    Raises `SimUnavailable` where torch is older than 2.10, or where the process has another
    backend under torch's one key for backends from outside.
    """
    global _enabled
    from conformance.simdevice.registration import register

    register()
    _enabled = True


def is_enabled() -> bool:
    """Whether this process has the device."""
    return _enabled


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
