"""`torch.sim`: what `torch.get_device_module("sim")` returns."""

from __future__ import annotations

import types
from typing import Any

import torch

from conformance.simdevice import streams
from conformance.simdevice.accounting import (
    max_memory_allocated,
    mem_get_info,
    memory_allocated,
    reset_peak_memory_stats,
)


class _OnlyDevice:
    """`torch.sim.device(0)`: there is one device, so nothing changes."""

    def __init__(self, device: object) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def sim_module() -> types.ModuleType:
    """As much of `torch.cuda` as engines use."""
    module = types.ModuleType("torch.sim", "The simulated device, one of it.")
    for name, value in _members().items():
        setattr(module, name, value)
    return module


def _members() -> dict[str, Any]:
    return {
        "Stream": streams.Stream,
        "Event": streams.Event,
        "StreamContext": streams.stream,
        "stream": streams.stream,
        "current_stream": streams.current_stream,
        "default_stream": streams.default_stream,
        "set_stream": streams.set_stream,
        "synchronize": streams.synchronize,
        "memory_allocated": memory_allocated,
        "memory_reserved": memory_allocated,
        "max_memory_allocated": max_memory_allocated,
        "max_memory_reserved": max_memory_allocated,
        "reset_peak_memory_stats": reset_peak_memory_stats,
        "mem_get_info": mem_get_info,
        "empty_cache": _nothing,
        "device": _OnlyDevice,
        "device_of": _OnlyDevice,
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "set_device": _nothing,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": _nothing,
        "_lazy_init": _nothing,
        "_is_in_bad_fork": lambda: False,
        "get_rng_state": _get_rng_state,
        "set_rng_state": _set_rng_state,
        "manual_seed": _nothing,
        "manual_seed_all": _nothing,
    }


def _get_rng_state(*_: object) -> torch.Tensor:
    return torch.get_rng_state()


def _set_rng_state(state: torch.Tensor, *_: object) -> None:
    torch.set_rng_state(state)


def _nothing(*_: object) -> None:
    """Random numbers are the CPU's, and there is no cache."""
