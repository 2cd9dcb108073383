"""Strategies for whole programs: for each clause, those that can break it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from conformance.allocator import Allocator
from conformance.devices import is_simulated
from conformance.geometry import Geometry, geometries
from conformance.host_tier import HostTier
from conformance.index_sets import Draw
from conformance.pool import Pool
from conformance.programs import Program
from conformance.scenarios.allocations import (
    allocations,
    double_free,
    duplicate_free,
    foreign_free,
    grouped,
    shared,
    slid,
)
from conformance.scenarios.illegal import refusals
from conformance.scenarios.lives import lives
from conformance.scenarios.moves import moved, state_copied, state_zeroed
from conformance.scenarios.round_trips import (
    ALL,
    anything,
    empty,
    every_form,
    other_rows,
    repeated,
    same_rows,
    separate_memory,
    split,
    two_copies,
)
from conformance.scenarios.script import Scenario, Script, StateUse
from conformance.scenarios.tiers import closed, filled, overlapped, tiered

__all__ = [
    "ALL",
    "ALLOCATIONS",
    "LIVES",
    "TIERS",
    "Scenario",
    "Script",
    "StateUse",
    "allocations",
    "anything",
    "closed",
    "double_free",
    "duplicate_free",
    "empty",
    "every_form",
    "filled",
    "foreign_free",
    "grouped",
    "lives",
    "moved",
    "other_rows",
    "overlapped",
    "programs",
    "refusals",
    "repeated",
    "same_rows",
    "separate_memory",
    "shared",
    "slid",
    "split",
    "state_copied",
    "state_zeroed",
    "tiered",
    "two_copies",
    "write_program",
]

ONE_TRIP: tuple[Scenario, ...] = (other_rows, same_rows, every_form)
LIVES: tuple[Scenario, ...] = (lives, moved, state_copied, state_zeroed)
_EPISODES: tuple[Scenario, ...] = (allocations, grouped, shared, slid)
ALLOCATIONS: tuple[Scenario, ...] = (*_EPISODES, double_free, duplicate_free, foreign_free)
TIERS: tuple[Scenario, ...] = (tiered, overlapped, filled, closed)


def most_requests(scenario: Scenario) -> int:
    """How often a program may repeat its scenario: more of the short ones, so that an
    example's fixed cost is spread over several round trips."""
    if scenario in ONE_TRIP:
        return 4
    return 2 if scenario in ALL or scenario in (anything, empty) else 1


@st.composite
def programs(
    draw: st.DrawFn,
    pool: Pool,
    device: str,
    scenario: Scenario,
    state: StateUse = "any",
    front: Allocator | HostTier | None = None,
) -> tuple[Geometry, Program]:
    """A geometry, and a program of one or more requests of this scenario in one pool."""
    return write_program(Draw.of(draw), pool, device, scenario, state, front)


def write_program(
    draw: Draw,
    pool: Pool,
    device: str,
    scenario: Scenario,
    state: StateUse = "any",
    front: Allocator | HostTier | None = None,
) -> tuple[Geometry, Program]:
    """A geometry and a program, as `draw` decides."""
    geometry = draw_geometry(draw, pool, device)
    script = Script(draw, pool, geometry, state, front)
    for _ in range(1 + draw(most_requests(scenario))):
        draw.apart()
        scenario(script)
    return geometry, Program(tuple(script.steps))


def draw_geometry(draw: Draw, pool: Pool, device: str) -> Geometry:
    """One of the pool's geometries; shrinks to the first. On a simulated device it has a
    schedule; shrinks to the laziest one."""
    options = geometries(pool, device)
    geometry = options[draw(len(options))]
    return replace(geometry, schedule=_schedule(draw)) if is_simulated(device) else geometry


def _schedule(draw: Draw) -> str:
    kind = draw(5)
    if kind < 2:
        return ("lazy", "lifo")[kind]
    draw.apart()
    if kind > 2:  # what is chosen is soon used up; a seed never is
        return f"random:{draw(1 << 16)}"
    return "chosen:" + ",".join(str(draw(4)) for _ in range(1 + draw(8)))
