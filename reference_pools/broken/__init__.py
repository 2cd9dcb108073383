"""Broken pools: history's faults, one class a file, each caught by the clause it names."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from conformance import Pool
from conformance.geometry import Geometry
from conformance.pool import Kind


@dataclass(frozen=True, slots=True)
class Fault:
    """A public fault, as a pool that has it.

    `reports` are public issue ids such as `sglang#25828`, `fault_class` the kind of fault,
    `clause` the one clause that it breaks, `make` builds the broken pool, and `program` is
    the smallest program that shows it (empty where a signature shows it).
    """

    reports: tuple[str, ...]
    fault_class: str
    clause: str
    make: Callable[[Geometry], Any]
    kind: Kind
    program: str = ""
    attention: Kind | None = None
    module: str = ""

    @property
    def name(self) -> str:
        """The first report as a pool name: `sglang-25828`."""
        return self.reports[0].replace("#", "-").replace(".", "_")

    def pool(self) -> Pool:
        """The broken pool, declared as a correct one would be."""
        return Pool(self.name, self.make, kind=self.kind, attention=self.attention, level="strict")


def faults() -> list[Fault]:
    """The `FAULT` of every module in this package."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return [fault_of(f"{__name__}.{name}") for name in names]


def fault_of(module: str) -> Fault:
    """The `FAULT` of one module; `Fault.module` names it."""
    fault: Fault = importlib.import_module(module).FAULT
    return replace(fault, module=module)
