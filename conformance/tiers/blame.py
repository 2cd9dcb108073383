"""Which clause a failing program of a host tier breaks.

Bytes that are wrong under one schedule and right where nothing is late are a matter of time.
That is blamed on rows that were given back in flight, or on copies of the same rows that
overlap, if it goes away once somebody waits before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from conformance.fewest import Steps, fewest_of_all
from conformance.first import first_trouble
from conformance.geometry import Geometry
from conformance.host_tier import HostTier
from conformance.pool import Pool
from conformance.programs import CLOSE, Await, BackUp, Claim, Drop, Load, Program, Step, Write
from conformance.races import race_in
from conformance.step_text import Rows
from conformance.tiers.plainer import plainer
from conformance.troubles import Trouble

_PLAINEST = {
    "raised": "host_tier_verbs_work",
    "payload": "host_tier_restores_every_row",
    "companion": "host_tier_carries_companions",
    "state": "host_tier_carries_state",
}
_TIMING = "host_tier_timing_changes_nothing"
_IN_TIME = "eager"
_SCHEDULES = ("lazy", "lifo", *(f"random:{seed}" for seed in range(8)))

Explained = tuple[Geometry, Steps, Trouble]
"""A program, and the trouble that it meets."""


def explain_tier(
    tier: HostTier,
    geometry: Geometry,
    program: Program,
    trouble: Trouble,
    binds: Callable[[str], bool],
) -> tuple[str, Explained]:
    """The clause that `trouble`, met in `program`, breaks, and the plainest program found that
    shows it. `binds` says which clauses this tier is held to."""
    shown = geometry, program.steps, trouble
    if trouble.kind == "clause" and not binds(trouble.clause):
        return trouble.clause, shown

    in_order = not binds("copies_of_one_row_run_in_order")

    def counts(trouble: Trouble) -> bool:
        return trouble.kind != "clause" or binds(trouble.clause)

    def first(geometry: Geometry, steps: Steps) -> Trouble | None:
        page = geometry.page_size
        if in_order and tuple(_waiting(steps, page, BackUp, Load)) != steps:
            return None  # what this tier need not bear shows nothing
        return first_trouble(tier, geometry, Program(steps), counts)

    def clause_of(found: Trouble, geometry: Geometry, steps: Steps) -> str:
        return _clause_of(found, geometry, lambda in_time: first(in_time, steps) is not None)

    def same(geometry: Geometry, steps: Steps) -> Trouble | None:
        found = first(geometry, steps)
        return found if found and clause_of(found, geometry, steps) == clause else None

    def alike(geometry: Geometry, steps: Steps) -> Trouble | None:
        found = first(geometry, steps)
        return found if found and found.kind != "clause" else None

    clause = clause_of(trouble, geometry, program.steps)
    if clause != _TIMING:
        return clause, shown if tier.isolated else _smallest(tier.pool, shown, same)
    # What is right in time is slow to ask for each program: asked once, at the end.
    smaller = shown if tier.isolated else _smallest(tier.pool, shown, alike)
    if clause_of(smaller[2], *smaller[:2]) != clause:
        smaller = _smallest(tier.pool, shown, same)
    geometry, steps, trouble = smaller
    race = race_in(lambda: first(geometry, steps))
    what = f"{trouble.what}; {race}" if race else trouble.what
    return _overlap(geometry, steps, first) or clause, (
        geometry,
        steps,
        replace(trouble, what=what),
    )


def _smallest(
    pool: Pool, shown: Explained, same: Callable[[Geometry, Steps], Trouble | None]
) -> Explained:
    geometry, steps, trouble = shown
    steps = fewest_of_all(steps, lambda steps: same(geometry, steps) is not None)
    trouble = same(geometry, steps) or trouble
    for plain, told in plainer(pool, geometry, steps):
        if (found := same(plain, told)) is not None:
            return plain, told, found
    return geometry, steps, trouble


def _overlap(
    geometry: Geometry, steps: Steps, first: Callable[[Geometry, Steps], Trouble | None]
) -> str:
    """The clause on overlapping copies that is broken: waits make the failure go away, under
    many schedules."""
    every = [geometry, *(replace(geometry, schedule=text) for text in _SCHEDULES)]
    for named, without in _without_overlaps(steps, geometry.page_size):
        if without != steps and not any(first(each, without) for each in every):
            return named
    return ""


def _clause_of(trouble: Trouble, geometry: Geometry, shows: Callable[[Geometry], bool]) -> str:
    if trouble.kind == "clause" and trouble.clause != "host_tier_leaves_other_rows_alone":
        return trouble.clause
    if trouble.kind == "raised" and "DeviceAssert" not in trouble.what:
        return _PLAINEST["raised"]
    in_time = replace(geometry, schedule=_IN_TIME)
    if geometry.schedule not in ("", _IN_TIME) and not shows(in_time):
        return _TIMING
    return trouble.clause or _PLAINEST[trouble.kind]


def _without_overlaps(steps: Steps, page_size: int) -> Iterator[tuple[str, Steps]]:
    """The clause that is broken if a wait before each drop, or each copy of rows that another
    copy uses, makes the failure go away; and the steps with these waits."""
    if steps[-1:] == (CLOSE,):
        yield "copies_outlive_their_tier", steps[:-1]
    yield "rows_in_flight_are_kept", tuple(_waiting(steps, page_size, Drop))
    yield "copies_of_one_row_run_in_order", tuple(_waiting(steps, page_size, BackUp, Load))


def _waiting(steps: Steps, page_size: int, *kinds: type[Step]) -> Iterator[Step]:
    """`steps`, with a wait before each of these kinds for all that uses the same rows."""
    placed, in_flight = dict[str, Rows](), dict[Await, Rows]()
    for step in steps:
        request = getattr(step, "request", "")
        if isinstance(step, Write | Claim):
            placed[request] = step.rows
        rows = step.rows if isinstance(step, Load) else placed.get(request, ())
        if isinstance(step, kinds):
            pages = {row // page_size for row in rows}
            for wait, used in list(in_flight.items()):
                if wait.request == request or pages & {row // page_size for row in used}:
                    del in_flight[wait]
                    yield wait
        yield step
        if isinstance(step, BackUp | Load):
            placed[request] = rows
            in_flight[Await("backup" if isinstance(step, BackUp) else "load", request)] = rows
        elif isinstance(step, Await):
            in_flight.pop(step, None)
