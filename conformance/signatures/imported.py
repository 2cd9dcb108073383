"""The members of a family that can be imported."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from conformance.pool import Family
from conformance.signatures.live import qualified


@dataclass(frozen=True, slots=True)
class Members:
    """What the packages of a family hold: classes, and modules that cannot be imported.
    `stale` are the exemptions of nothing."""

    classes: tuple[type, ...]
    unimportable: dict[str, str]
    stale: tuple[str, ...]


@lru_cache(maxsize=64)
def members(family: Family) -> Members:
    """Import the family's packages and list its classes, in a stable order.

    Where packages are given, only classes defined in them count.
    """
    unimportable: dict[str, str] = {}
    for package in family.packages:
        _import_all(package, family, unimportable)
    classes = [
        cls
        for cls in _subclasses(family.root)
        if not family.packages or within(cls.__module__, family.packages)
    ]
    classes = [c for c in classes if not within(c.__module__, exempt_names(family))]
    classes.sort(key=qualified)
    stale = [key for key in _stale(family, classes) if not within(key, unimportable)]
    return Members(tuple(classes), unimportable, tuple(stale))


def exempt_names(family: Family) -> list[str]:
    return [key for key in family.exempt if isinstance(key, str)]


def _import_all(name: str, family: Family, unimportable: dict[str, str]) -> None:
    """Import `name` and, for a package, every module below it that is not exempt."""
    if within(name, exempt_names(family)):
        return
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        unimportable[name] = f"{type(error).__name__}: {error}"
        return
    for child in _children(getattr(module, "__path__", ())):
        _import_all(f"{name}.{child}", family, unimportable)


def _children(paths: Iterable[str]) -> list[str]:
    """The modules of a package, and its folders without an `__init__.py` that hold some;
    `__main__` is a program and is left out."""
    names = {info.name for info in pkgutil.iter_modules(paths)}
    folders = {entry.parent.name for path in paths for entry in Path(path).glob("*/*.py")}
    return sorted(n for n in names | folders if n.isidentifier() and n != "__main__")


def _subclasses(root: type) -> Iterator[type]:
    seen: set[type] = set()
    stack: list[type] = root.__subclasses__()
    while stack:
        cls = stack.pop()
        if cls not in seen:
            seen.add(cls)
            yield cls
            stack.extend(cls.__subclasses__())


def within(name: str, packages: Collection[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _stale(family: Family, classes: Sequence[type]) -> Iterator[str]:
    names = {qualified(cls) for cls in classes}
    for key in family.exempt:
        if isinstance(key, str):
            if key not in names and not is_module(key):
                yield key
        elif key not in classes:
            yield qualified(key)


def is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:  # its parent cannot be imported
        return False
