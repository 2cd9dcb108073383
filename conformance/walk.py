"""Find every tensor that an object reaches, and by which path."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from torch import Tensor, nn

_LEAVES = (str, bytes, int, float, bool, type(None), type, ModuleType)


def tensors_in(root: object) -> Iterator[tuple[str, Tensor]]:
    """Each tensor reached from `root` once, with its path, e.g. `mamba_pool.conv[0]`.

    Follows attributes (`__dict__` and `__slots__`), mappings, lists, tuples and sets; not
    functions, classes or modules.
    """
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [("", root)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, Tensor):
            if id(value) not in seen:
                seen.add(id(value))
                yield path, value
        elif not isinstance(value, _LEAVES) and id(value) not in seen:
            seen.add(id(value))
            stack.extend(reversed(list(_children(path, value))))


def _children(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield f"{path}[{key!r}]", item
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield f"{path}[{index}]", item
    elif not callable(value) or isinstance(value, nn.Module) or _is_data(value):
        prefix = f"{path}." if path else ""
        for name in _attributes(value):
            item = getattr(value, name, None)
            yield f"{prefix}{name}", item


def _attributes(value: Any) -> list[str]:
    names = list(getattr(value, "__dict__", ()))
    for klass in type(value).__mro__:
        slots = klass.__dict__.get("__slots__", ())
        names.extend([slots] if isinstance(slots, str) else slots)
    return [n for n in dict.fromkeys(names) if n not in ("__dict__", "__weakref__")]


def _is_data(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
