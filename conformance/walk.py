"""Find every tensor that an object reaches, and by which path."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import Tensor

_LEAVES = (str, bytes, int, float, type, ModuleType, torch.dtype, torch.device, torch.Size)
_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType)
_LEAF_TYPES = frozenset((*_LEAVES, bool, type(None)))


def tensors_in(root: object, skip: object = None) -> Iterator[tuple[str, Tensor]]:
    """Each tensor reached from `root` once, with its path, e.g. `mamba_pool.conv[0]`.

    Follows attributes (`__dict__` and `__slots__`), mappings, lists, tuples and sets; not
    functions, classes or modules, nor the object `skip`.
    """
    if isinstance(root, Tensor):
        yield "", root
        return
    seen = {id(root), id(skip)}
    unopened: list[tuple[str, Any]] = [("", root)]
    while unopened:
        for path, value in _children(*unopened.pop()):
            if type(value) in _LEAF_TYPES or id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, Tensor):
                yield path, value
            elif not isinstance(value, _LEAVES):
                unopened.append((path, value))


def _children(path: str, value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, list | tuple | set | frozenset | deque):
        return ((f"{path}[{index}]", item) for index, item in enumerate(value))
    if isinstance(value, Mapping):
        return ((f"{path}[{key!r}]", item) for key, item in value.items())
    if isinstance(value, _FUNCTIONS):
        return ()
    prefix = f"{path}." if path else ""
    return ((f"{prefix}{name}", getattr(value, name, None)) for name in _attributes(value))


def _attributes(value: Any) -> list[str]:
    return [*getattr(value, "__dict__", ()), *_slots(type(value))]  # type: ignore[arg-type]


@lru_cache(maxsize=1024)
def _slots(cls: type) -> tuple[str, ...]:
    names: list[str] = []
    for klass in cls.__mro__:
        slots = klass.__dict__.get("__slots__", ())
        names.extend([slots] if isinstance(slots, str) else slots)
    return tuple(n for n in names if n not in ("__dict__", "__weakref__"))
