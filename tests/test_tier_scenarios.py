"""Programs for host tiers: each is legal, and together they reach what goes wrong in engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from drawn_programs import TIERS, Drawn, drawn, seeded

from conformance import HostTier, scenarios
from conformance.geometry import Geometry
from conformance.programs import (
    Await,
    BackUp,
    Claim,
    Drop,
    Load,
    Poll,
    Program,
    Read,
    Refuse,
    Use,
    Write,
    parse_program,
)
from conformance.runner import run
from conformance.troubles import Trouble

SEEDS = 16
COUNT = 100
LIVES = (scenarios.tiered, scenarios.overlapped)
EVERY = (*LIVES, scenarios.filled)
each_tier = pytest.mark.parametrize("name", TIERS)
each_scenario = pytest.mark.parametrize("scenario", scenarios.TIERS, ids=lambda s: s.__name__)


@cache
def programs(name: str, scenario: scenarios.Scenario) -> tuple[Drawn, ...]:
    return tuple(seeded(name, scenario, seed) for seed in range(COUNT))


def check(tier: HostTier, geometry: Geometry, program: Program) -> int:
    """Run it; how many rows were loaded."""
    found: list[Trouble] = []
    tally = run(tier.pool, geometry, program, found.append, tier)
    assert found == [], str(program)
    return tally.rows


# -- programs are legal --------------------------------------------------------------------


@each_tier
@each_scenario
def test_correct_tier_is_not_accused(name: str, scenario: scenarios.Scenario) -> None:
    tier = TIERS[name]
    rows = [check(tier, *each) for each in programs(name, scenario)[:SEEDS]]
    assert sum(count > 0 for count in rows) >= SEEDS // 2


@each_scenario
@pytest.mark.parametrize("name", ["token-host", "hybrid-dsa-host"])
def test_correct_tier_is_not_accused_by_what_hypothesis_draws(
    name: str, scenario: scenarios.Scenario
) -> None:
    assert len([check(TIERS[name], *each) for each in drawn(name, scenario, 10)]) == 10


@each_scenario
def test_program_is_read_back_as_it_was_printed(scenario: scenarios.Scenario) -> None:
    for _, program in programs("hybrid-dsa-host", scenario):
        assert parse_program(str(program)) == program


@each_scenario
def test_every_request_is_written_or_claimed_once(scenario: scenarios.Scenario) -> None:
    for _, program in programs("hybrid-host", scenario):
        named = [step.request for step in program if isinstance(step, Write | Claim)]
        assert len(set(named)) == len(named) > 0


@pytest.mark.parametrize(
    ("capability", "kinds"),
    [("layers", Use), ("polling", Poll), ("row_bytes", ()), ("state", ())],
)
@pytest.mark.parametrize("scenario", LIVES)
def test_what_a_tier_lacks_is_not_in_its_programs(
    capability: str, kinds: Any, scenario: scenarios.Scenario
) -> None:
    tier = replace(TIERS["hybrid-host"], lacks=[capability])
    for seed in range(COUNT):
        _, program = seeded(tier, scenario, seed)
        assert not any(isinstance(step, kinds) for step in program)
        states = {getattr(step, "state", None) for step in program} - {None}
        assert not states or capability != "state"


def test_tier_with_every_capability_has_them_all_in_its_programs() -> None:
    steps = [step for _, program in programs("hybrid-host", LIVES[0]) for step in program]
    assert any(isinstance(step, Use) for step in steps)
    assert any(isinstance(step, Poll) for step in steps)
    assert any(getattr(step, "state", None) is not None for step in steps)


# -- situations ----------------------------------------------------------------------------

Situation = Callable[[Geometry, Program], bool]


def in_flight(program: Program) -> Iterator[tuple[Any, set[tuple[str, str]]]]:
    """Each step, and which copies nobody has awaited on the host by then."""
    flying = set[tuple[str, str]]()
    for step in program:
        yield step, set(flying)
        if isinstance(step, BackUp | Load):
            flying.add(("backup" if isinstance(step, BackUp) else "load", step.request))
        elif isinstance(step, Await | Poll):
            flying.discard((step.which, step.request))


def has(name: str, *kinds: type) -> Situation:
    def found(_: Geometry, program: Program) -> bool:
        return any(isinstance(step, kinds) for step in program)

    found.__name__ = name
    return found


uses_layers, polls, reads = has("uses_layers", Use), has("polls", Poll), has("reads", Read)
claims, drops_again = has("claims", Claim), has("drops_again", Refuse)
comes_back = has("comes_back", Load)


def drop_in_flight(_: Geometry, program: Program) -> bool:
    return any(
        isinstance(step, Drop) and any(request == step.request for _, request in flying)
        for step, flying in in_flight(program)
    )


def rows_reused_after_a_drop_in_flight(_: Geometry, program: Program) -> bool:
    dropped = False
    for step, flying in in_flight(program):
        if isinstance(step, Drop) and ("load", step.request) in flying:
            dropped = True
        elif isinstance(step, BackUp) and dropped:
            return True
    return False


def second_load(_: Geometry, program: Program) -> bool:
    loads = [step.request for step in program if isinstance(step, Load)]
    return len(set(loads)) < len(loads)


def copies_of_several_requests(_: Geometry, program: Program) -> bool:
    return any(len({request for _, request in flying}) > 1 for _, flying in in_flight(program))


def both_ways_at_once(_: Geometry, program: Program) -> bool:
    return any(len({way for way, _ in flying}) > 1 for _, flying in in_flight(program))


def load_behind_its_own_backup(_: Geometry, program: Program) -> bool:
    return any(
        isinstance(step, Load) and ("backup", step.request) in flying
        for step, flying in in_flight(program)
    )


def backup_behind_a_load_of_its_rows(_: Geometry, program: Program) -> bool:
    claimed: dict[str, set[int]] = {}
    loaded: dict[str, set[int]] = {}
    for step, flying in in_flight(program):
        if isinstance(step, Claim):
            claimed[step.request] = {*step.rows}
        elif isinstance(step, Load):
            loaded[step.request] = {*step.rows}
        elif isinstance(step, BackUp) and step.request in claimed:
            rows = claimed[step.request]
            if any(w == "load" and loaded[r] & rows for w, r in flying):
                return True
    return False


def rows_overwritten_before_a_load(_: Geometry, program: Program) -> bool:
    return _somebody_before_a_load(program, Write)


def rows_read_before_a_load(_: Geometry, program: Program) -> bool:
    return _somebody_before_a_load(program, Read)


def _somebody_before_a_load(program: Program, kind: type) -> bool:
    """Whether another request's rows were written, or read, and then given to a load."""
    placed: dict[str, set[int]] = {}
    used = set[int]()
    for step in program:
        if isinstance(step, Write):
            placed[step.request] = {*step.rows}
        if isinstance(step, kind):
            used |= placed[step.request]
        if isinstance(step, Load):
            if used & {*step.rows}:
                return True
            placed[step.request] = {*step.rows}
    return False


def pages_in_another_order(geometry: Geometry, program: Program) -> bool:
    return any(
        list(step.rows) != sorted(step.rows) for step in program if isinstance(step, Write | Load)
    )


def more_backups_than_the_host_has_pages(geometry: Geometry, program: Program) -> bool:
    held: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for step in program:
        if isinstance(step, Write):
            sizes[step.request] = len(step.rows)
        elif isinstance(step, BackUp):
            held[step.request] = sizes[step.request]
        elif isinstance(step, Drop):
            held.pop(step.request, None)
        if sum(held.values()) > geometry.size - geometry.page_size:
            return True
    return False


def backup_after_a_drop(_: Geometry, program: Program) -> bool:
    dropped = False
    for step in program:
        dropped = dropped or isinstance(step, Drop)
        if isinstance(step, BackUp) and dropped:
            return True
    return False


SHARES: list[tuple[scenarios.Scenario, Situation, float]] = [
    *((scenario, uses_layers, 0.4) for scenario in LIVES),
    *((scenario, polls, 0.4) for scenario in LIVES),
    *((scenario, reads, 0.4) for scenario in LIVES),
    *((scenario, drops_again, 0.3) for scenario in LIVES),
    *((scenario, drop_in_flight, 0.3) for scenario in LIVES),
    *((scenario, rows_reused_after_a_drop_in_flight, 0.1) for scenario in LIVES),
    *((scenario, second_load, 0.05) for scenario in LIVES),
    *((scenario, copies_of_several_requests, 0.4) for scenario in LIVES),
    *((scenario, both_ways_at_once, 0.3) for scenario in LIVES),
    *((scenario, rows_overwritten_before_a_load, 0.1) for scenario in LIVES),
    *((scenario, rows_read_before_a_load, 0.05) for scenario in LIVES),
    *((scenario, pages_in_another_order, 0.1) for scenario in EVERY),
    (scenarios.overlapped, claims, 0.3),
    (scenarios.overlapped, load_behind_its_own_backup, 0.3),
    (scenarios.overlapped, backup_behind_a_load_of_its_rows, 0.3),
    (scenarios.filled, more_backups_than_the_host_has_pages, 0.9),
    (scenarios.filled, backup_after_a_drop, 0.9),
    (scenarios.filled, comes_back, 0.9),
    (scenarios.filled, drops_again, 0.3),
]


@pytest.mark.parametrize(
    ("scenario", "situation", "least"),
    SHARES,
    ids=lambda value: getattr(value, "__name__", None),
)
@pytest.mark.parametrize("name", ["token-host", "hybrid-dsa-host"])
def test_situation_is_reached(
    name: str, scenario: scenarios.Scenario, situation: Situation, least: float
) -> None:
    reached = sum(situation(*each) for each in programs(name, scenario))
    assert reached >= least * COUNT


@pytest.mark.parametrize(
    "situation",
    [claims, load_behind_its_own_backup, backup_behind_a_load_of_its_rows],
    ids=lambda situation: situation.__name__,
)
def test_copies_of_one_request_overlap_only_where_they_should(situation: Situation) -> None:
    for scenario in (scenarios.tiered, scenarios.filled):
        assert not any(situation(*each) for each in programs("hybrid-dsa-host", scenario))


@each_scenario
def test_geometries_differ_and_some_requests_have_state(scenario: scenarios.Scenario) -> None:
    found = programs("hybrid-host", scenario)
    assert len({geometry.page_size for geometry, _ in found}) > 1
    writes = [step for _, program in found for step in program if isinstance(step, Write)]
    with_state = sum(step.state is not None for step in writes)
    assert 0.2 < with_state / len(writes) < 0.8
