"""Points torch's names for the accelerator at the simulated one, and back."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from conformance.simdevice import streams
from conformance.simdevice.accounting import (
    max_memory_allocated,
    mem_get_info,
    memory_allocated,
    reset_peak_memory_stats,
)
from conformance.simdevice.pinned import empty_pinned, pinned_over
from conformance.simdevice.poison import poison_

_UNFILLED = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
_FACTORIES = (
    "arange",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "tensor",
    "zeros",
    "zeros_like",
)
_METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")

_lock = threading.RLock()
_depth = 0
_undo: list[tuple[Any, str, Any]] = []


@contextlib.contextmanager
def shims() -> Iterator[None]:
    """Inside, `torch.cuda`'s and `torch.accelerator`'s streams, events and waits, `torch.Stream`,
    `torch.Event` and factories with `pin_memory=True` are those of the simulated device.

    May be nested; the outermost one undoes it. Code that had imported a name by itself
    before (`from torch.cuda import Event`) keeps the old one.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            for owner, name, value in _replacements():
                _undo.append((owner, name, owner.__dict__.get(name, _undo)))
                setattr(owner, name, value)


def _leave() -> None:
    global _depth
    with _lock:
        _depth -= 1
        while not _depth and _undo:
            owner, name, value = _undo.pop()
            if value is _undo:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    for name in ("Stream", "Event", "current_stream", "default_stream", "set_stream", "stream"):
        yield torch.cuda, name, getattr(streams, name)
    yield torch.cuda, "StreamContext", streams.stream
    yield torch.cuda, "synchronize", streams.synchronize
    for name in ("current_stream", "set_stream", "synchronize"):
        yield torch.accelerator, name, getattr(streams, name)
    yield torch.accelerator, "memory_allocated", memory_allocated
    yield torch.accelerator, "max_memory_allocated", max_memory_allocated
    yield torch.accelerator, "reset_peak_memory_stats", reset_peak_memory_stats
    yield torch.accelerator, "memory_reserved", memory_allocated
    yield torch.accelerator, "max_memory_reserved", max_memory_allocated
    yield torch.accelerator, "get_memory_info", mem_get_info
    yield torch.accelerator, "empty_cache", lambda: None
    yield torch, "Stream", streams.Stream
    yield torch, "Event", streams.Event
    for owner, names in ((torch, _FACTORIES), (Tensor, _METHODS)):
        for name in names:
            yield owner, name, _pinning(getattr(owner, name), filled=name not in _UNFILLED)


def _pinning(factory: Callable[..., Tensor], filled: bool) -> Callable[..., Tensor]:
    """The factory, which can make pinned memory too."""

    @functools.wraps(factory)
    def made(*args: Any, pin_memory: bool | None = None, **kwargs: Any) -> Tensor:
        tensor = factory(*args, **kwargs)
        if not pin_memory:
            return tensor
        if not tensor.is_cpu:
            raise RuntimeError(f"only CPU tensors can be pinned, not one on {tensor.device}")
        if tensor.is_contiguous():
            # Its memory is its own, so it can be taken over as it is.
            pinned = pinned_over(tensor.detach())
        else:
            pinned = empty_pinned(tensor.shape, tensor.dtype, tensor.stride())
            pinned.copy_(tensor.detach())
        if not filled:
            poison_(pinned)
        return pinned.requires_grad_() if tensor.requires_grad else pinned

    return made
