"""A missing wait shows; a program that waits for all it needs never fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from simdevice_device import sim_device  # noqa: F401  (each test has the device)
from simdevice_programs import LEGAL, RACES, read_of_unwritten

from conformance import simdevice as sim

PLAIN = ("lazy", "lifo", "eager")
DRAWN = tuple(f"random:{seed}" for seed in range(50))


@pytest.mark.parametrize("program", LEGAL)
def test_legal_program_never_fails(program: Callable[[], None]) -> None:
    for schedule in PLAIN + DRAWN:
        sim.reset(schedule)
        program()


@pytest.mark.parametrize("program", RACES)
def test_program_that_waits_never_fails(program: Callable[[bool], bool]) -> None:
    for schedule in PLAIN + DRAWN:
        sim.reset(schedule)
        assert program(True), schedule


@pytest.mark.parametrize("program", RACES)
def test_race_is_caught(program: Callable[[bool], bool]) -> None:
    wrong = []
    for schedule in ("lazy", "lifo", *DRAWN):
        sim.reset(schedule)
        if not program(False):
            wrong.append(schedule)
    assert wrong, "no schedule shows it"
    sim.reset(wrong[0])
    assert not program(False), f"{wrong[0]} does not show it again"


@pytest.mark.parametrize("program", RACES)
def test_eager_device_hides_every_race_but_of_the_host(program: Callable[[bool], bool]) -> None:
    sim.reset("eager")
    assert program(False)


def test_one_schedule_can_hide_what_another_shows() -> None:
    shown = {}
    for schedule in ("lazy", "lifo"):
        sim.reset(schedule)
        shown[schedule] = not read_of_unwritten(False)
    assert shown == {"lazy": False, "lifo": True}


def drawn(data: st.DataObject) -> Callable[[int], int]:
    return lambda count: data.draw(st.integers(0, count - 1))


def failing_schedule(program: Callable[[bool], bool]) -> str:
    """The text of the smallest schedule that Hypothesis finds."""
    texts = []

    @settings(
        max_examples=300,
        database=None,
        derandomize=True,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def check(data: Any) -> None:
        sim.choosing(drawn(data))
        right = program(False)
        texts.append(sim.schedule_text())
        assert right

    with pytest.raises(AssertionError):
        check()
    return texts[-1]


def test_hypothesis_finds_shrinks_and_replays_a_race() -> None:
    text = failing_schedule(read_of_unwritten)
    assert text == "chosen:1"
    sim.reset(text)
    assert not read_of_unwritten(False)
    assert sim.schedule_text() == text
    sim.reset(text)
    assert read_of_unwritten(True)


@settings(max_examples=50, database=None, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("program", RACES)
def test_program_that_waits_never_fails_under_drawn_schedules(
    program: Callable[[bool], bool], data: Any
) -> None:
    sim.choosing(drawn(data))
    assert program(True), sim.schedule_text()
