"""Broken pools, allocators and host tiers: history's faults, one a file, each caught by the
clause it names."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from conformance import Allocator, HostTier, Pool
from conformance.adapters import Adapter
from conformance.allocator import AllocatorKind
from conformance.contract import Level
from conformance.geometry import Geometry
from conformance.pool import Kind


@dataclass(frozen=True, slots=True)
class Fault:
    """A public fault, as a pool, an allocator or a host tier that has it.

    `reports` are public issue ids such as `sglang#25828`, `fault_class` the kind of fault,
    `clause` the one clause that it breaks, and `program` the smallest program that shows it
    (empty where a signature shows it). `make` builds the broken pool; a fault of an
    allocator has a correct pool there, `allocator`, its kind, and `front`, which makes the
    broken allocator before that pool. A fault of a host tier has a correct pool too, and
    `tier`, which makes the broken tier. `sizes` are constraints on the geometry, `level` is
    `required` where a strict clause would be accused first, `device` where it shows.
    """

    reports: tuple[str, ...]
    fault_class: str
    clause: str
    make: Callable[[Geometry], Any]
    kind: Kind
    program: str = ""
    attention: Kind | None = None
    adapter: Adapter | None = None
    front: Callable[[Any], Any] | None = None
    allocator: AllocatorKind | None = None
    sizes: Mapping[str, Any] = field(default_factory=dict)
    tier: Callable[[Any], Any] | None = None
    level: Level = "strict"
    device: str = "cpu"
    module: str = ""

    @property
    def name(self) -> str:
        """The first report as a name: `sglang-25828`."""
        return self.reports[0].replace("#", "-").replace(".", "_")

    def declared(self) -> Pool | Allocator | HostTier:
        """What is broken, declared as a correct one would be."""
        pool = Pool(
            self.name,
            self.make,
            kind=self.kind,
            attention=self.attention,
            adapter=self.adapter,
            level=self.level,
            **self.sizes,
        )
        if self.tier is not None:
            return HostTier(self.name, self.tier, pool, level=self.level)
        if self.front is None or self.allocator is None:
            return pool
        return Allocator(self.name, self.front, pool, kind=self.allocator, level=self.level)


def faults() -> list[Fault]:
    """The `FAULT` of every module in this package."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return [fault_of(f"{__name__}.{name}") for name in names]


def fault_of(module: str) -> Fault:
    """The `FAULT` of one module; `Fault.module` names it."""
    fault: Fault = importlib.import_module(module).FAULT
    return replace(fault, module=module)
