"""Operations that return one new tensor, and that pools use: short of torch's own way.

That way is three calls of Python an operation: for the shape, the memory and the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from conformance.simdevice.copies import is_sim
from conformance.simdevice.fallback import different_devices, fallback
from conformance.simdevice.memory import MEMORY
from conformance.simdevice.plans import plan_of
from conformance.simdevice.scheduler import SCHEDULER
from conformance.simdevice.shapes import infer

aten = torch.ops.aten

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add.Tensor": torch.add,
    "sub.Tensor": torch.sub,
    "mul.Tensor": torch.mul,
    "div.Tensor": torch.div,
    "remainder.Scalar": torch.remainder,
    "remainder.Tensor": torch.remainder,
    "floor_divide": torch.floor_divide,
    "eq.Scalar": torch.eq,
    "eq.Tensor": torch.eq,
    "ne.Scalar": torch.ne,
    "ne.Tensor": torch.ne,
    "lt.Scalar": torch.lt,
    "lt.Tensor": torch.lt,
    "le.Scalar": torch.le,
    "le.Tensor": torch.le,
    "gt.Scalar": torch.gt,
    "gt.Tensor": torch.gt,
    "ge.Scalar": torch.ge,
    "ge.Tensor": torch.ge,
    "bitwise_and.Tensor": torch.bitwise_and,
    "bitwise_or.Tensor": torch.bitwise_or,
    "bitwise_not": torch.bitwise_not,
    "cat": torch.cat,
    "where.self": torch.where,
    "index_select": torch.index_select,
    "gather": torch.gather,
}
"""By the name of the operation, what takes the same arguments and `out=`."""


WHOLE: dict[str, Callable[..., Any]] = {
    "all": torch.all,
    "any": torch.any,
    "max": torch.max,
    "min": torch.min,
}
"""What makes one element of a whole tensor: a truth, or one of the tensor's dtype."""


def kernels() -> dict[str, Callable[..., Any]]:
    """The kernels of this module, by the names of their operations."""
    return {
        **{name: _kernel(name, call) for name, call in FUNCTIONS.items()},
        **{name: _whole(name, call) for name, call in WHOLE.items()},
        "aminmax": aminmax,
        "bincount": bincount,
        "clone": clone,
    }


def aminmax(tensor: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """`aten::aminmax`, of the whole tensor; of one axis by the fallback."""
    if dim is not None or not tensor.numel():
        low, high = (MEMORY.empty((0,), tensor.dtype) for _ in range(2))
        return fallback(aten.aminmax.out, tensor, dim=dim, keepdim=keepdim, min=low, max=high)
    view = MEMORY.cpu_view(tensor)
    (low, least), (high, most) = (MEMORY.new((), tensor.dtype) for _ in range(2))
    run = partial(torch.aminmax, view, out=(least, most))
    SCHEDULER.enqueue("aminmax", run, (least, most), (view,))
    return low, high


def bincount(tensor: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """`aten::bincount`: waits for the current stream, as its size depends on the values."""
    if weights is not None:
        return fallback(aten.bincount.default, tensor, weights, minlength)  # type: ignore[no-any-return]  # torch.ops is untyped
    SCHEDULER.finish_stream(SCHEDULER.current())
    return MEMORY.adopt(torch.bincount(MEMORY.cpu_view(tensor), minlength=minlength))


def clone(tensor: Tensor, *, memory_format: torch.memory_format | None = None) -> Tensor:
    """`aten::clone`."""
    plain = memory_format in (None, torch.preserve_format, torch.contiguous_format)
    if not (plain and tensor.is_contiguous()):
        made: Tensor = torch.empty_like(
            tensor, memory_format=torch.preserve_format if memory_format is None else memory_format
        )
        return made.copy_(tensor)
    made, target = MEMORY.new(tensor.shape, tensor.dtype)
    view = MEMORY.cpu_view(tensor)
    SCHEDULER.enqueue("clone", partial(target.copy_, view), (target,), (view,))
    return made


def _whole(name: str, call: Callable[..., Any]) -> Callable[[Tensor], Tensor]:
    truth = name in ("all", "any")

    def kernel(tensor: Tensor) -> Tensor:
        if not truth and not tensor.numel():
            raise RuntimeError(f"{name}(): no elements, and no axis to go along")
        as_truth = truth and tensor.dtype is not torch.uint8
        out, target = MEMORY.new((), torch.bool if as_truth else tensor.dtype)
        view = MEMORY.cpu_view(tensor)
        SCHEDULER.enqueue(name, partial(call, view, out=target), (target,), (view,))
        return out

    return kernel


def _kernel(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    packet, _, overload = name.partition(".")
    op = getattr(getattr(aten, packet), overload or "default")
    plan = plan_of(op)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        reads: list[Tensor] = []
        host = [_on_host(plan.name, arg, reads) for arg in args]
        shapes = infer(plan, op, args, kwargs)
        if shapes is None or len(shapes) != 1:
            return fallback(op, *args, **kwargs)
        size, stride, dtype = shapes[0]
        out = MEMORY.empty_strided(size, stride, dtype)
        target = MEMORY.cpu_view(out)
        run = partial(call, *host, **kwargs, out=target)
        SCHEDULER.enqueue(plan.name, run, (target,), tuple(reads))
        return out

    return kernel


def _on_host(name: str, value: Any, reads: list[Tensor]) -> Any:
    """The argument as the CPU takes it; what it reads is added to `reads`."""
    if isinstance(value, Tensor):
        if not is_sim(value):
            if value.dim():
                raise different_devices(name, "sim:0", value.device)
            return value.clone()
        view = MEMORY.cpu_view(value)
        reads.append(view)
        return view
    if isinstance(value, Sequence):
        return [_on_host(name, each, reads) for each in value]
    return value
