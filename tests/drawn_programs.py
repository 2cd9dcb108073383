"""Programs of the suite's scenarios: as Hypothesis draws them, or as a seed decides."""

from __future__ import annotations

import random
from functools import cache

from hypothesis import Phase, given, settings

from conformance import Allocator, HostTier, Pool, scenarios
from conformance.geometry import Geometry
from conformance.index_sets import CHUNK, Draw
from conformance.programs import Program
from reference_pools.declarations import kv_pools

DECLARED = {
    entry.name: entry for entry in kv_pools() if isinstance(entry, Pool | Allocator | HostTier)
}
POOLS = {name: entry for name, entry in DECLARED.items() if isinstance(entry, Pool)}
ALLOCATORS = {name: entry for name, entry in DECLARED.items() if isinstance(entry, Allocator)}
TIERS = {name: entry for name, entry in DECLARED.items() if isinstance(entry, HostTier)}

Drawn = tuple[Geometry, Program]


def pool_of(name: str) -> Pool:
    """The pool of this name, or that of the allocator or host tier of this name."""
    entry = DECLARED[name]
    return entry if isinstance(entry, Pool) else entry.pool


@cache
def drawn(name: str, scenario: scenarios.Scenario, count: int) -> tuple[Drawn, ...]:
    """The first `count` programs of `scenario` for what is declared: always the same ones."""
    front = ALLOCATORS.get(name) or TIERS.get(name)
    found: list[Drawn] = []

    @settings(
        derandomize=True, database=None, deadline=None, max_examples=count, phases=[Phase.generate]
    )
    @given(scenarios.programs(pool_of(name), "cpu", scenario, front=front))
    def collect(program: Drawn) -> None:
        found.append(program)

    collect()
    return tuple(found)


def seeded(
    what: str | Pool | Allocator | HostTier, scenario: scenarios.Scenario, seed: int
) -> Drawn:
    """One program of `scenario`: much faster than `drawn`, and less like what a check draws."""
    source, entry = random.Random(seed), DECLARED[what] if isinstance(what, str) else what
    draw = Draw(lambda: source.randbytes(CHUNK))
    if isinstance(entry, Pool):
        return scenarios.write_program(draw, entry, "cpu", scenario)
    return scenarios.write_program(draw, entry.pool, "cpu", scenario, front=entry)
