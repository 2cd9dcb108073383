"""The classes of a family: found by import, each with its cases, and the coverage gate."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from conformance.contract import Clause
from conformance.known import Known
from conformance.pool import Family
from conformance.signatures.live import RULES
from conformance.violation import violation


@dataclass(frozen=True, slots=True)
class Members:
    """What the packages of a family hold: classes, and modules that cannot be imported."""

    classes: tuple[type, ...]
    unimportable: dict[str, str]
    stale: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClassCase:
    """One member of a family under one clause. `cls` is None for a member that is only a
    name: a module that cannot be imported, or an exemption of nothing; `problem` says so."""

    family: Family
    clause: Clause
    name: str
    cls: type | None = None
    covered: bool = False
    problem: str = field(default="")

    @property
    def owner(self) -> str:
        """The family's name, under which the report counts this check."""
        return self.family.name

    @property
    def known(self) -> Known | None:
        """The declaration that this class breaks this clause, if there is one."""
        return self.family.known.get(self.name, {}).get(self.clause.id)

    @property
    def is_exempt(self) -> bool:
        return self.cls is not None and is_exempt(self.family, self.cls)

    def check(self) -> None:
        """Raise the `Violation` of the clause, with every problem of this class."""
        problems = [self.problem] if self.problem else list(self._problems())
        if problems:
            raise violation(
                self.clause.id,
                [
                    ("family", f"{self.family.root.__module__}.{self.family.name}"),
                    ("class", qualified(self.cls) if self.cls else self.name),
                    *(("found", problem) for problem in problems),
                ],
            )

    def _problems(self) -> Iterator[str]:
        assert self.cls is not None
        if self.clause.id in RULES:
            yield from RULES[self.clause.id](self.family.root, self.cls, self.family.verbs)
        elif self.covered and self.is_exempt:
            yield "it has a Pool and is exempt too: delete the exemption"
        elif not self.covered and not self.is_exempt:
            yield "no Pool makes this class, and no exemption gives a reason"


def class_cases(family: Family, clause: Clause, made: Collection[type]) -> list[ClassCase]:
    """One case per class, under this clause; for the coverage gate also one per module that
    cannot be imported and per exemption that names nothing. `made` are the pools' classes."""
    found = members(family)
    concrete_only = clause.id not in RULES
    cases = [
        ClassCase(family, clause, cls.__name__, cls, cls in made)
        for cls in found.classes
        if not (concrete_only and inspect.isabstract(cls))
    ]
    if concrete_only:
        cases += [
            ClassCase(family, clause, name, problem=f"cannot be imported: {error}")
            for name, error in found.unimportable.items()
        ]
        cases += [
            ClassCase(family, clause, name, problem="is exempt, but is no class or module here")
            for name in found.stale
        ]
    return cases


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
        if not family.packages or _within(cls.__module__, family.packages)
    ]
    classes = [c for c in classes if not _within(c.__module__, _exempt_names(family))]
    classes.sort(key=qualified)
    stale = [key for key in _stale(family, classes) if not _within(key, unimportable)]
    return Members(tuple(classes), unimportable, tuple(stale))


def is_exempt(family: Family, cls: type) -> bool:
    return cls in family.exempt or qualified(cls) in family.exempt


def qualified(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _exempt_names(family: Family) -> list[str]:
    return [key for key in family.exempt if isinstance(key, str)]


def _import_all(name: str, family: Family, unimportable: dict[str, str]) -> None:
    """Import `name` and, for a package, every module below it that is not exempt."""
    if _within(name, _exempt_names(family)):
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


def _within(name: str, packages: Collection[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _stale(family: Family, classes: Sequence[type]) -> Iterator[str]:
    names = {qualified(cls) for cls in classes}
    for key in family.exempt:
        if isinstance(key, str):
            if key not in names and not _is_module(key):
                yield key
        elif key not in classes:
            yield qualified(key)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:  # its parent cannot be imported
        return False
