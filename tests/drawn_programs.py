"""Programs of the suite's scenarios: as Hypothesis draws them, or as a seed decides."""

from __future__ import annotations

import random
from functools import cache

from hypothesis import Phase, given, settings

from conformance import Allocator, Pool, scenarios
from conformance.geometry import Geometry
from conformance.index_sets import CHUNK, Draw
from conformance.programs import Program
from reference_pools.declarations import kv_pools

DECLARED = {entry.name: entry for entry in kv_pools() if isinstance(entry, Pool | Allocator)}
POOLS = {name: entry for name, entry in DECLARED.items() if isinstance(entry, Pool)}
ALLOCATORS = {name: entry for name, entry in DECLARED.items() if isinstance(entry, Allocator)}

Drawn = tuple[Geometry, Program]


def pool_of(name: str) -> Pool:
    """The pool of this name, or behind the allocator of this name."""
    entry = DECLARED[name]
    return entry.pool if isinstance(entry, Allocator) else entry


@cache
def drawn(name: str, scenario: scenarios.Scenario, count: int) -> tuple[Drawn, ...]:
    """The first `count` programs of `scenario` for a declared pool or allocator: always the
    same ones."""
    allocator = ALLOCATORS.get(name)
    found: list[Drawn] = []

    @settings(
        derandomize=True, database=None, deadline=None, max_examples=count, phases=[Phase.generate]
    )
    @given(scenarios.programs(pool_of(name), "cpu", scenario, allocator=allocator))
    def collect(program: Drawn) -> None:
        found.append(program)

    collect()
    return tuple(found)


def seeded(what: str | Pool | Allocator, scenario: scenarios.Scenario, seed: int) -> Drawn:
    """One program of `scenario`: much faster than `drawn`, and less like what a check draws."""
    source, entry = random.Random(seed), DECLARED[what] if isinstance(what, str) else what
    draw = Draw(lambda: source.randbytes(CHUNK))
    if isinstance(entry, Pool):
        return scenarios.write_program(draw, entry, "cpu", scenario)
    return scenarios.write_program(draw, entry.pool, "cpu", scenario, allocator=entry)
