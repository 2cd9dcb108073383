"""Operations that have a kernel of their own: those that torch needs, and cheap ones."""

# ruff: noqa: ARG001
# The arguments are torch's, whether they matter here or not.

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from conformance.simdevice.copies import is_sim
from conformance.simdevice.fallback import different_devices, resize_out
from conformance.simdevice.memory import MEMORY
from conformance.simdevice.scheduler import SCHEDULER


def empty(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> Tensor:
    """`aten::empty.memory_format`."""
    dtype = dtype or torch.get_default_dtype()
    if memory_format in (None, torch.contiguous_format, torch.preserve_format):
        return MEMORY.empty(tuple(size), dtype)
    like = torch.empty(tuple(size), device="meta", memory_format=memory_format)
    return MEMORY.empty_strided(like.shape, like.stride(), dtype)


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:
    """`aten::empty_strided`."""
    return MEMORY.empty_strided(size, stride, dtype or torch.get_default_dtype())


def arange(end: Any, *, dtype: torch.dtype | None = None, **rest: Any) -> Tensor:
    """`aten::arange`."""
    return arange_step(0, end, 1, dtype=dtype, **rest)


def arange_step(
    start: Any, end: Any, step: Any = 1, *, dtype: torch.dtype | None = None, **_: Any
) -> Tensor:
    """`aten::arange.start` and `aten::arange.start_step`."""
    if dtype is None:
        whole = all(isinstance(each, int) for each in (start, end, step))
        dtype = torch.int64 if whole else torch.get_default_dtype()
    return arange_out(start, end, step, out=MEMORY.empty((_steps(start, end, step, dtype),), dtype))


def arange_out(start: Any, end: Any, step: Any = 1, *, out: Tensor) -> Tensor:
    """`aten::arange.start_out`."""
    count = _steps(start, end, step, out.dtype)
    resize_out(out, (torch.Size([count]), (1,), out.dtype))
    view = MEMORY.cpu_view(out)
    SCHEDULER.enqueue("arange", partial(_arange, start, end, step, out=view), (view,))
    return out


_arange = torch.arange
"""Not the one that `shims` puts in its place."""


def _steps(start: Any, end: Any, step: Any, dtype: torch.dtype) -> int:
    if not step or (end - start) * step < 0:
        raise RuntimeError(
            f"arange from {start} to {end}: upper bound and lower bound inconsistent with "
            f"step {step}"
        )
    if dtype.is_floating_point:
        return math.ceil((float(end) - float(start)) / float(step))
    if all(isinstance(each, int) for each in (start, end, step)):
        return -((start - end) // step)  # type: ignore[no-any-return]  # scalars are untyped
    # How floats become integers has changed between releases of torch.
    return _arange(start, end, step, dtype=dtype).numel()


def fill_(tensor: Tensor, value: Any) -> Tensor:
    """`aten::fill_.Scalar`."""
    view = MEMORY.cpu_view(tensor)
    SCHEDULER.enqueue("fill_", partial(view.fill_, value), (view,))
    return tensor


def zero_(tensor: Tensor) -> Tensor:
    """`aten::zero_`."""
    view = MEMORY.cpu_view(tensor)
    SCHEDULER.enqueue("zero_", view.zero_, (view,))
    return tensor


def equal(one: Tensor, other: Tensor) -> bool:
    """`aten::equal`: waits for the current stream."""
    if not (is_sim(one) and is_sim(other)):
        raise different_devices("equal", one.device, other.device)
    SCHEDULER.finish_stream(SCHEDULER.current())
    return torch.equal(MEMORY.cpu_view(one), MEMORY.cpu_view(other))


def item(tensor: Tensor) -> int | float | complex | bool:
    """`aten::_local_scalar_dense`: waits for the current stream."""
    SCHEDULER.finish_stream(SCHEDULER.current())
    return MEMORY.cpu_view(tensor).item()
