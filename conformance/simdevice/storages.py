"""Storages of the device that are made by themselves, not through a tensor.

torch has no allocator for a backend written in Python: where it makes such a storage itself,
it follows a null pointer and the process ends. So these calls are taken over.
"""

# ruff: noqa: ARG001
# The arguments are torch's, whether they matter here or not.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance.simdevice.memory import MEMORY

_new = torch.UntypedStorage.__new__
_taken_over = ("new", "resize_", "_new_shared")
_original = {name: getattr(torch.UntypedStorage, name) for name in _taken_over}


def guard_storages() -> None:
    """Make `UntypedStorage(n, device="sim")`, `new`, copies, pickles work; refuse the rest."""
    storage: Any = torch.UntypedStorage
    storage.__new__ = staticmethod(_guarded_new)
    storage.new = _guarded_fresh
    storage.resize_ = _guarded_resize
    storage._new_shared = classmethod(_guarded_shared)


def _guarded_new(cls: type, *args: Any, device: Any = None, **kwargs: Any) -> Any:
    if not _is_sim(device):
        if device is not None:
            kwargs["device"] = device
        return _new(cls, *args, **kwargs)
    given = args[0] if args else kwargs.get("size", 0)
    if not isinstance(given, Sequence):
        return MEMORY.empty((int(given),), torch.uint8).untyped_storage()
    storage = MEMORY.empty((len(given),), torch.uint8).untyped_storage()
    for at, byte in enumerate(given):
        storage[at] = byte
    return storage


def _guarded_fresh(storage: torch.UntypedStorage) -> Any:
    if _is_sim(storage.device):
        return _guarded_new(torch.UntypedStorage, 0, device=storage.device)
    return _original["new"](storage)


def _guarded_resize(storage: torch.UntypedStorage, size: int) -> Any:
    if _is_sim(storage.device):
        raise NotImplementedError("a storage of sim cannot be resized; call resize_ of a tensor")
    return _original["resize_"](storage, size)


def _guarded_shared(cls: type, size: int, *, device: Any = "cpu") -> Any:
    if _is_sim(device):
        raise NotImplementedError("the memory of sim cannot be shared between processes")
    return _original["_new_shared"](size, device=device)


def _is_sim(device: Any) -> bool:
    return device is not None and torch.device(device).type == "sim"
