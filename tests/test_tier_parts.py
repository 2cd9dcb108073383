"""The parts of a run on a host tier: room, flights, plainer programs, the fewest steps, blame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from drawn_programs import TIERS

from conformance import Pool
from conformance.fewest import Steps, fewest_of_all
from conformance.geometry import Geometry, geometries
from conformance.programs import Program, parse_program
from conformance.tiers import blame
from conformance.tiers.flights import Flight, Flights
from conformance.tiers.plainer import plainer
from conformance.tiers.reads import Look
from conformance.tiers.room import Room

TOKEN, HYBRID = TIERS["token-host"].pool, TIERS["hybrid-host"].pool


def steps(text: str) -> Steps:
    return parse_program(text).steps


def text_of(told: Steps) -> str:
    return str(Program(told))


# -- room ----------------------------------------------------------------------------------


def room(held: int = 0, late: int = 0, states: int = 0, late_states: int = 0) -> Room:
    """Of 20 rows and 3 states, so many in use or given back in flight."""
    made = Room({"token": 20, "state": 3})
    for count, _ in enumerate(range(states), 1):
        made.take(0, count)
    made.take(held + late, None)
    made.give_back(late, None, later=True)
    for count in range(late_states):
        made.take(0, count)
        made.give_back(0, count, later=True)
    return made


@pytest.mark.parametrize(
    ("made", "tokens", "state", "has"),
    [
        (room(), 20, None, True),
        (room(), 21, None, False),
        (room(held=15), 5, None, True),
        (room(held=15), 6, None, False),
        (room(late=15), 5, None, True),
        (room(late=15), 6, None, None),
        (room(late=15), 20, None, None),
        (room(late=15), 21, None, False),
        (room(held=10, late=5), 10, None, None),
        (room(held=10, late=5), 11, None, False),
        (room(states=3), 5, None, True),
        (room(states=3), 5, 7, False),
        (room(states=2), 5, 7, True),
        (room(states=2, late_states=1), 5, 7, None),
        (room(held=20, late_states=3), 5, 7, False),
        (room(late=20, states=3), 5, 7, False),
        (room(late=20, late_states=3), 5, 7, None),
    ],
)
def test_room_is_there_or_not_or_depends(
    made: Room, tokens: int, state: int | None, has: bool | None
) -> None:
    assert made.has(tokens, state) is has


def test_room_counts_what_is_free_for_sure() -> None:
    made = room(held=5, late=10, states=1)
    assert (made.held, made.late) == ({"token": 5, "state": 1}, {"token": 10, "state": 0})
    assert made.free == {"token": 5, "state": 2}
    assert str(made) == "5 host rows are free (token), 2 host rows are free (state)"
    made.settle()
    assert made.free == {"token": 15, "state": 2}


def test_room_is_taken_and_given_back() -> None:
    made = room()
    made.take(5, 9)
    made.take(10, None)
    assert made.free == {"token": 5, "state": 2}
    made.give_back(5, 9, later=False)
    assert made.free == {"token": 10, "state": 3}
    made.give_back(10, None, later=True)
    assert made.free == {"token": 10, "state": 3}
    assert made.problem({"token": 20, "state": 3}) == ""


def test_room_without_states_counts_none() -> None:
    made = Room({"token": 20})
    made.take(5, 3)
    assert (made.free, made.has(15, 3), made.has(16, 3)) == ({"token": 15}, True, False)
    made.give_back(5, 3, later=True)
    assert made.problem({"token": 17}) == ""


@pytest.mark.parametrize(
    ("made", "token", "state", "problem"),
    [
        (room(held=5), 15, 3, ""),
        (room(held=5), 14, 3, "14 host rows are free (token), expected 15"),
        (room(held=5), 16, 3, "16 host rows are free (token), expected 15"),
        (room(held=5, states=1), 15, 3, "3 host rows are free (state), expected 2"),
        (room(held=5, late=10), 5, 3, ""),
        (room(held=5, late=10), 10, 3, ""),
        (room(held=5, late=10), 15, 3, ""),
        (room(held=5, late=10), 4, 3, "4 host rows are free (token), expected 5 to 15"),
        (room(held=5, late=10), 16, 3, "16 host rows are free (token), expected 5 to 15"),
        (room(late_states=2), 20, 0, "0 host rows are free (state), expected 1 to 3"),
    ],
)
def test_other_room_than_there_must_be_is_told(
    made: Room, token: int, state: int, problem: str
) -> None:
    assert made.problem({"token": token, "state": state}) == problem


# -- flights -------------------------------------------------------------------------------


def flight(request: str = "r0", way: Any = "backup", **more: Any) -> Flight:
    given = {"rows": (5, 6, 7, 8, 9), "state": None, "page_size": 5, "step": 0} | more
    return Flight(way, request, object(), queued=range(0), **given)


@pytest.mark.parametrize(
    ("rows", "state", "uses"),
    [
        ((5,), None, True),
        ((9, 10), None, True),
        ((10, 11), None, False),
        ((4,), None, False),
        ((), None, False),
        ((), 3, True),
        ((20,), 3, True),
        ((20,), 4, False),
    ],
)
def test_flight_uses_whole_pages_and_its_state(
    rows: tuple[int, ...], state: int | None, uses: bool
) -> None:
    assert flight(state=3).uses(rows, state) is uses
    assert flight(state=None).uses(rows, state) is (uses and rows not in ((), (20,)))


def test_flights_know_what_is_not_over() -> None:
    first, second = flight(), flight("r1", "load", rows=(10, 11, 12, 13, 14))
    third = flight("r0", "load", rows=(5, 6, 7, 8, 9))
    flights = Flights([first, second, third])
    first.is_done = True
    assert flights.unfinished() == [second, third]
    assert flights.of("r0") == [third]
    assert flights.of("r9") == []
    assert flights.unseen((5, 10), None) == [second, third]
    third.is_seen = True
    assert flights.unseen((5, 10), None) == [second]
    assert flights.of("r0") == [third]


def test_what_is_overwritten_is_stale_from_then_on() -> None:
    first, second = flight(), flight("r1", rows=(10, 11, 12, 13, 14), state=3)
    flights = Flights([first, second])
    flights.overwritten((20,), 4)
    assert (first.is_stale, second.is_stale) == (False, False)
    flights.overwritten((9,), 3)
    assert (first.is_stale, second.is_stale) == (True, True)


def test_flight_is_told_by_its_way_and_request() -> None:
    assert str(flight("r7", "load")) == "load of r7"


# -- the same program, told more plainly -----------------------------------------------------

FIRST = geometries(TOKEN)[0]
BY_THREES = next(g for g in geometries(TOKEN) if (g.page_size, g.size) == (3, 27))


def told_plainly(pool: Pool, geometry: Geometry, text: str) -> list[tuple[Geometry, str]]:
    return [(plain, text_of(told)) for plain, told in plainer(pool, geometry, steps(text))]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("write r3 at 20..24; back up r3", "write r0 at 5..9; back up r0"),
        ("write r1 at 5..9; write r0 at 20..24", "write r0 at 5..9; write r1 at 10..14"),
        (
            "write r0 at 10..14; load r0 at 5..9; write r1 at 10..14",
            "write r0 at 5..9; load r0 at 10..14; write r1 at 5..9",
        ),
        (
            "write r7 at 5..9; drop r7; refuse drop r7; await load of r7; poll backup of r7",
            "write r0 at 5..9; drop r0; refuse drop r0; await load of r0; poll backup of r0",
        ),
        (
            "write r4 at 20..24; claim r5 at 20..24; use r5; read r4; overwrite",
            "write r0 at 5..9; claim r1 at 5..9; use r1; read r0; overwrite",
        ),
    ],
)
def test_program_is_told_by_low_pages_and_requests_in_order(text: str, plain: str) -> None:
    assert told_plainly(TOKEN, FIRST, text) == [(FIRST, plain)]


@pytest.mark.parametrize("text", ["write r0 at 5..9; back up r0; load r0 at 10..14", "overwrite"])
def test_program_that_is_plain_already_is_not_told_again(text: str) -> None:
    assert told_plainly(TOKEN, FIRST, text) == []


def test_states_are_told_in_order() -> None:
    text = "write r0 at 5..9 state 9; write r1 at 10..14 state 3; load r0 at 5..9 state 3"
    ((_, plain),) = told_plainly(HYBRID, geometries(HYBRID)[0], text)
    assert plain == "write r0 at 5..9 state 1; write r1 at 10..14 state 2; load r0 at 5..9 state 2"


def test_program_is_told_with_a_page_for_each_request_first() -> None:
    text = "write r0 at 20..29; back up r0; load r0 at 25..29,20..24"
    assert told_plainly(TOKEN, FIRST, text) == [
        (FIRST, "write r0 at 5..9; back up r0; load r0 at 10..14"),
        (FIRST, "write r0 at 5..14; back up r0; load r0 at 10..14,5..9"),
    ]


def test_program_is_told_in_the_first_geometry_where_it_fits() -> None:
    text = "write r0 at 24..29; back up r0; load r0 at 3..5,9..11"
    page, pages = (
        "write r0 at {}; back up r0; load r0 at {}".format(*rows)
        for rows in (("5..9", "10..14"), ("5..14", "15..24"))
    )
    assert told_plainly(TOKEN, BY_THREES, text) == [
        (FIRST, page),
        (FIRST, pages),
        (BY_THREES, "write r0 at 3..5; back up r0; load r0 at 6..8"),
        (BY_THREES, "write r0 at 3..8; back up r0; load r0 at 9..14"),
    ]


def test_program_of_more_pages_than_the_first_geometry_has_stays_in_its_own() -> None:
    writes = [f"write r{at} at {3 * at}..{3 * at + 2}" for at in (9, 8, 7, 6, 5, 4)]
    plain = [f"write r{at} at {3 * at + 3}..{3 * at + 5}" for at in range(6)]
    found = told_plainly(TOKEN, BY_THREES, "; ".join(writes))
    assert found == [(BY_THREES, "; ".join(plain))]


@pytest.mark.parametrize(
    ("schedule", "tried"),
    [
        ("random:7", ["lazy", "lifo", "random:7"]),
        ("lifo", ["lazy", "lifo"]),
        ("lazy", ["lazy", "lifo"]),
    ],
)
def test_lazier_schedules_are_tried_first(schedule: str, tried: list[str]) -> None:
    geometry = replace(geometries(TOKEN, "sim")[0], schedule=schedule)
    found = told_plainly(TOKEN, geometry, "write r3 at 20..24; back up r3")
    assert [plain.schedule for plain, _ in found] == tried
    assert {told for _, told in found} == {"write r0 at 5..9; back up r0"}
    plain = told_plainly(TOKEN, geometry, "write r0 at 5..9; back up r0")
    assert [each.schedule for each, _ in plain] == tried[: tried.index(schedule)]


def test_first_geometry_is_tried_under_every_schedule_before_the_own_one() -> None:
    (own,) = (g for g in geometries(TOKEN, "sim") if replace(g, device="cpu") == BY_THREES)
    found = told_plainly(TOKEN, replace(own, schedule="random:7"), "write r0 at 3..5")
    assert [(plain.page_size, plain.schedule) for plain, _ in found] == [
        (5, "lazy"),
        (5, "lifo"),
        (5, "random:7"),
        (3, "lazy"),
        (3, "lifo"),
    ]


# -- the fewest steps ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "needs", "few"),
    [
        ("write r0 at 5; back up r0; use r0", ["back up r0"], "back up r0"),
        ("write r0 at 5; write r1 at 6; back up r0; read r1", ["write r1 at 6"], "write r1 at 6"),
        ("write r0 at 5; back up r0", [], ""),
        (
            "write r0 at 5; drop r0; overwrite; drop r0",
            ["write r0 at 5", "overwrite"],
            "write r0 at 5; overwrite",
        ),
        (
            "write r0 at 5; refuse drop r0; write r1 at 6",
            ["refuse drop r0"],
            "refuse drop r0",
        ),
    ],
)
def test_fewest_steps_that_show_the_same_are_left(text: str, needs: list[str], few: str) -> None:
    def shows(told: Steps) -> bool:
        return set(needs) <= {str(step) for step in told}

    assert text_of(fewest_of_all(steps(text), shows)) == few


def test_step_that_others_name_stays() -> None:
    def shows(told: Steps) -> bool:
        text = text_of(told)
        if "back up r0" in text and "write r0" not in text:
            raise LookupError("r0")
        return "back up r0" in text

    text = "write r1 at 6; write r0 at 5; back up r1; back up r0; drop r1"
    assert text_of(fewest_of_all(steps(text), shows)) == "write r0 at 5; back up r0"


def test_error_that_is_no_missing_name_is_not_hidden() -> None:
    def shows(told: Steps) -> bool:
        raise ValueError("no such step")

    with pytest.raises(ValueError, match="no such step"):
        fewest_of_all(steps("write r0 at 5"), shows)


# -- blame ---------------------------------------------------------------------------------

WAITING: list[tuple[str, str, str]] = [
    ("write r0 at 5..9; back up r0; drop r0", "drop", "await backup of r0; drop r0"),
    (
        "write r0 at 5..9; back up r0; load r0 at 5..9; drop r0",
        "drop",
        "await backup of r0; await load of r0; drop r0",
    ),
    ("write r0 at 5..9; back up r0; await backup of r0; drop r0", "drop", "drop r0"),
    (
        "write r0 at 5..9; back up r0; load r0 at 10..14",
        "copy",
        "await backup of r0; load r0 at 10..14",
    ),
    (
        "write r0 at 5..9; back up r0; claim r1 at 5..9; back up r1",
        "copy",
        "await backup of r0; back up r1",
    ),
    ("write r0 at 5..9; back up r0; write r1 at 10..14; back up r1", "copy", "back up r1"),
    (
        "write r1 at 20..24; back up r1; await backup of r1; load r1 at 5..9; "
        "write r0 at 10..14; back up r0; await backup of r0; load r0 at 5..9",
        "copy",
        "await load of r1; load r0 at 5..9",
    ),
    ("write r0 at 5..9; write r1 at 10..14; back up r1; drop r0", "drop", "drop r0"),
]


@pytest.mark.parametrize(("text", "kind", "end"), WAITING)
def test_waits_come_before_what_overlaps_and_nowhere_else(text: str, kind: str, end: str) -> None:
    without: Callable[..., Any] = blame._without_overlaps
    named = {"drop": "rows_in_flight_are_kept", "copy": "copies_of_one_row_run_in_order"}
    told = text_of(dict(without(steps(text), 5))[named[kind]])
    assert told == text.rpartition("; ")[0] + "; " + end


def test_read_that_seems_early_and_finds_the_right_bytes_is_not_accused() -> None:
    rows = torch.arange(6, dtype=torch.uint8).view(2, 3)
    look = Look(0, 0, 0, torch.tensor([1, 2]), rows, found=rows.clone(), late=[object()])
    assert look.too_early(object()) == ""
