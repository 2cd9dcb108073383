"""The shapes of results, worked out on the meta device and remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from conformance.simdevice.plans import Plan

Shape = tuple[torch.Size, tuple[int, ...], torch.dtype]
"""Size, stride and dtype of one result."""

_LIMIT = 4096
_known: dict[Any, list[Shape] | None] = {}


def infer(
    plan: Plan, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Shape] | None:
    """The shapes of what `op` returns, or of its `out=` arguments as they should be.

    None where meta tensors do not tell. Raises what the operation raises for arguments that
    do not fit together.
    """
    key = _key(plan, op, args, kwargs)
    try:
        return _known[key]
    except KeyError:
        pass
    except TypeError:
        return _on_meta(plan, op, args, kwargs)
    if len(_known) >= _LIMIT:
        _known.clear()
    shapes = _known[key] = _on_meta(plan, op, args, kwargs)
    return shapes


def _key(plan: Plan, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    # The value of a scalar, or of a number that stands for a tensor, changes no shape.
    by_type = plan.numbers | plan.tensors
    parts = [
        type(arg) if i in by_type and not isinstance(arg, Tensor) else _key_of(arg)
        for i, arg in enumerate(args)
    ]
    return (op, *parts, *((name, _key_of(value)) for name, value in kwargs.items()))


def _key_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return (value.dtype, value.shape, value.stride())
    if isinstance(value, list | tuple):
        return tuple(_key_of(each) for each in value)
    if isinstance(value, float | int):
        return (type(value), value)
    return value


def _on_meta(
    plan: Plan, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Shape] | None:
    named = {name: _meta(value) for name, value in kwargs.items()}
    for name in plan.outs:
        if isinstance(kwargs.get(name), Tensor):
            named[name] = torch.empty(0, dtype=kwargs[name].dtype, device="meta")
    try:
        with torch.no_grad():
            result = op(*[_meta(arg) for arg in args], **named)
    except NotImplementedError:
        return None
    except RuntimeError as error:
        if "meta" in str(error).lower() or "DynamicOutputShape" in type(error).__name__:
            return None
        raise
    results = [named[name] for name in plan.outs if name in named] if plan.outs else result
    if not isinstance(results, list | tuple):
        results = [results]
    if not all(isinstance(each, Tensor) for each in results):
        return None
    return [(each.shape, each.stride(), each.dtype) for each in results]


def _meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, list | tuple):
        return [_meta(each) for each in value]
    return torch.device("meta") if isinstance(value, torch.device) else value
