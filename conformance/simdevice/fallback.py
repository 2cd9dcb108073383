"""The kernel of every operation that has none of its own here: the CPU's, queued."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from conformance.simdevice.copies import is_sim
from conformance.simdevice.memory import MEMORY
from conformance.simdevice.plans import Plan, plan_of
from conformance.simdevice.scheduler import SCHEDULER
from conformance.simdevice.shapes import Shape, infer
from conformance.simdevice.views import set_to

_RESIZED = (
    "An output with one or more elements was resized since it had shape {}, which does not "
    "match the required output shape {}. This behavior is deprecated, and in a future PyTorch "
    "release outputs will not be resized unless they have zero elements. You can explicitly "
    "reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
)


def fallback(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Any operation on tensors of the device; raises at once for unfit arguments."""
    plan = plan_of(op)
    if plan.is_view:
        raise NotImplementedError(f"sim has no kernel for the view {plan.name}")
    args = tuple(_as_tensors(plan, args))
    _check_devices(plan, args, kwargs)
    shapes = None if plan.syncs else infer(plan, op, args, kwargs)
    if shapes is None and (plan.outs or not plan.written):
        return _now(plan, op, args, kwargs)
    if not plan.written:
        assert shapes is not None
        return _queued_function(plan, op, args, kwargs, shapes)
    if plan.outs:
        assert shapes is not None
        for name, shape in zip(plan.outs, shapes, strict=True):
            resize_out(kwargs[name], shape)
    return _queued_in_place(plan, op, args, kwargs)


def different_devices(name: str, one: object, other: object) -> RuntimeError:
    return RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{one} and {other}! (when checking the arguments of {name})"
    )


def resize_out(out: Tensor, shape: Shape) -> None:
    """Make `out` fit, with torch's warning if it held elements of another shape."""
    size, stride, _ = shape
    if out.shape == size:
        return
    if out.numel():
        warnings.warn(_RESIZED.format(list(out.shape), list(size)), UserWarning, stacklevel=3)
    set_to(out, size, stride)


def _as_tensors(plan: Plan, args: Sequence[Any]) -> list[Any]:
    """Numbers that C++ had wrapped as tensors arrive bare; most operations take them so."""
    if plan.numbers_as_tensors:
        return list(args)
    return [
        torch.tensor(arg) if i in plan.tensors and isinstance(arg, int | float | complex) else arg
        for i, arg in enumerate(args)
    ]


def _check_devices(plan: Plan, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse host tensors, but for scalars, and indices where CUDA takes them."""
    for value in (*args, *kwargs.values()):
        nested = isinstance(value, list | tuple)
        for each in value if nested else (value,):
            if not isinstance(each, Tensor) or is_sim(each):
                continue
            if each.dim() and not (nested and plan.takes_host_indices):
                raise different_devices(plan.name, "sim:0", each.device)
    for i in plan.written:
        target = args[i] if i < len(args) else kwargs.get(plan.arguments[i])
        for each in target if isinstance(target, list | tuple) else (target,):
            if isinstance(each, Tensor) and not is_sim(each):
                raise different_devices(plan.name, "sim:0", each.device)


class _OnHost:
    """The arguments of one call as CPU tensors, and which of them it writes and reads."""

    def __init__(self, plan: Plan, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._seen: list[Tensor] = []
        written = {plan.arguments[i] for i in plan.written}
        self.writes: list[Tensor] = []
        self.reads: list[Tensor] = []
        self.args = [self._taken(arg, plan.arguments[i] in written) for i, arg in enumerate(args)]
        self.kwargs = {name: self._taken(arg, name in written) for name, arg in kwargs.items()}

    def _taken(self, value: Any, written: bool) -> Any:
        if isinstance(value, Tensor):
            if not is_sim(value):
                return value.clone()  # a scalar or an index: by value
            view = MEMORY.cpu_view(value)
            (self.writes if written else self.reads).append(view)
            return view
        if isinstance(value, list | tuple):
            return [self._taken(each, written) for each in value]
        return torch.device("cpu") if isinstance(value, torch.device) else value


def _queued_in_place(plan: Plan, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    host = _OnHost(plan, args, kwargs)

    def run() -> None:
        op(*host.args, **host.kwargs)

    SCHEDULER.enqueue(plan.name, run, tuple(host.writes), tuple(host.reads))
    if not plan.returns:
        return None
    outs = [args[i] if i < len(args) else kwargs[plan.arguments[i]] for i in plan.written]
    return outs[0] if plan.returns == 1 else tuple(outs)


def _queued_function(
    plan: Plan, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: Sequence[Shape]
) -> Any:
    outs = [MEMORY.empty_strided(*shape) for shape in shapes]
    targets = [MEMORY.cpu_view(out) for out in outs]
    host = _OnHost(plan, args, kwargs)

    def run() -> None:
        result = op(*host.args, **host.kwargs)
        results = result if isinstance(result, list | tuple) else (result,)
        for target, each in zip(targets, results, strict=True):
            target.copy_(each)

    SCHEDULER.enqueue(plan.name, run, tuple(targets), tuple(host.reads))
    if plan.returns_list:
        return outs
    return outs[0] if plan.returns == 1 else tuple(outs)


def _now(plan: Plan, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Wait for the current stream, then run: the result's shape depends on the values."""
    SCHEDULER.finish_stream(SCHEDULER.current())
    host = _OnHost(plan, args, kwargs)
    for name in plan.outs:
        host.kwargs[name] = torch.empty(0, dtype=kwargs[name].dtype)
    with SCHEDULER.quiet():
        result = op(*host.args, **host.kwargs)
    if not plan.outs:
        return _on_device(result)
    for name in plan.outs:
        made = host.kwargs[name]
        resize_out(kwargs[name], (made.shape, made.stride(), made.dtype))
        _fill(kwargs[name], made)
    outs = tuple(kwargs[name] for name in plan.outs)
    return outs[0] if plan.returns == 1 else outs


def _on_device(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_on_device(each) for each in value)
    if not isinstance(value, Tensor):
        return value
    return MEMORY.adopt(value)


def _fill(target: Tensor, value: Tensor) -> None:
    with SCHEDULER.quiet():
        MEMORY.cpu_view(target).copy_(value)
