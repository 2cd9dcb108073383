"""Programs as text: printed on one line, and read back."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import Pool, scenarios
from conformance.contract import CLAUSES
from conformance.geometry import parse_geometry
from conformance.programs import (
    Claim,
    Foreign,
    Form,
    Offload,
    Overwrite,
    Program,
    Refuse,
    Reload,
    Scribble,
    Write,
    parse_program,
)
from conformance.violation import Finding, split_replay
from reference_pools.declarations import kv_pools

POOLS = {entry.name: entry for entry in kv_pools() if isinstance(entry, Pool)}
SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (*scenarios.ALL, *scenarios.REFUSALS, scenarios.empty, scenarios.anything)
}
ONLY_FOR = {"state_mismatch": True, "unwanted_state": False}
"""Scenarios for pools with state, and for those without."""
DRAWN = settings(derandomize=True, database=None, deadline=None, max_examples=10)

ROWS = {
    "none": (),
    "4": (4,),
    "4..6": (4, 5, 6),
    "6,5,4": (6, 5, 4),
    "4..5,9,7..8": (4, 5, 9, 7, 8),
    "4,4": (4, 4),
    "-1": (-1,),
    "-3..-1": (-3, -2, -1),
    "-1..1": (-1, 0, 1),
    "300": (300,),
}
FORMS = [
    Form(dtype, on_host, strided, scalar_state)
    for dtype, on_host, strided, scalar_state in itertools.product(
        ("int64", "int32", "float32"), (False, True), (False, True), (False, True)
    )
]


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Write("r0", (4,)), "write r0 at 4"),
        (Write("r0", (4, 5, 6), 3), "write r0 at 4..6 state 3"),
        (Write("r0", ()), "write r0 at none"),
        (Write("r0", (), 3), "write r0 at none state 3"),
        (Claim("bad", (-1, 4)), "claim bad at -1,4"),
        (Offload("r0", "c0"), "offload r0 as c0"),
        (Offload("r0", "c0", 3), "offload r0 as c0 state 3"),
        (Offload("r0", "c0", None, 0, 2), "offload r0[0:2] as c0"),
        (Offload("r0", "c0", 3, 2, 5), "offload r0[2:5] as c0 state 3"),
        (Offload("r0", "c0", None, 2, 2), "offload r0[2:2] as c0"),
        (Offload("r0", "c0", None, 0, 0), "offload r0[0:0] as c0"),
        (Offload("r0", "c0", form=Form("int32", True)), "offload r0 as c0 int32 host"),
        (Reload("c0", (9, 8, 12)), "reload c0 at 9,8,12"),
        (Reload("c0", (9,), 5), "reload c0 at 9 state 5"),
        (Reload("c0", ()), "reload c0 at none"),
        (
            Reload("c0", (9,), 5, Form(strided=True, scalar_state=True)),
            "reload c0 at 9 state 5 strided scalar",
        ),
        (Overwrite(), "overwrite"),
        (Scribble("c0"), "scribble c0"),
        (Foreign("foreign", 3), "foreign foreign of 3"),
        (Foreign("foreign", 0), "foreign foreign of 0"),
        (Refuse(Offload("bad", "none")), "refuse offload bad as none"),
        (Refuse(Reload("c0", (-1,), 2)), "refuse reload c0 at -1 state 2"),
    ],
    ids=str,
)
def test_step_as_text_and_back(step: Any, text: str) -> None:
    assert str(step) == text
    assert parse_program(text) == Program((step,))


@pytest.mark.parametrize("text", ROWS)
def test_rows_as_text_and_back(text: str) -> None:
    step = Reload("c0", ROWS[text])
    assert str(step) == f"reload c0 at {text}"
    assert parse_program(str(step)) == Program((step,))


@pytest.mark.parametrize("state", [None, 0, 1, 11, -1])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form).strip() or "plain")
def test_every_form_and_state_round_trips(form: Form, state: int | None) -> None:
    program = Program(
        (
            Offload("r0", "c0", state, form=form),
            Offload("r0", "c1", state, 1, 2, form),
            Reload("c0", (4, 5), state, form),
            Refuse(Reload("c0", (), state, form)),
        )
    )
    assert parse_program(str(program)) == program


@pytest.mark.parametrize("text", ["", " ", ";", " ; ;"])
def test_program_of_no_steps(text: str) -> None:
    assert parse_program(text) == Program(())


def test_spaces_and_a_last_semicolon_are_ignored() -> None:
    assert parse_program("  overwrite ;scribble c0;  ") == Program((Overwrite(), Scribble("c0")))


@pytest.mark.parametrize(
    ("pool", "scenario"),
    [
        (pool, scenario)
        for pool, scenario in itertools.product(POOLS, SCENARIOS)
        if ONLY_FOR.get(scenario, POOLS[pool].has_state) == POOLS[pool].has_state
    ],
)
def test_drawn_program_round_trips(pool: str, scenario: str) -> None:
    drawn = scenarios.programs(POOLS[pool], "cpu", SCENARIOS[scenario])

    @DRAWN
    @given(drawn)
    def check(found: Any) -> None:
        geometry, program = found
        assert parse_program(str(program)) == program
        replay = Finding(pool, geometry, program, 0, "").replay
        sizes, steps = split_replay(replay)
        assert parse_geometry(sizes, POOLS[pool]) == geometry
        assert parse_program(steps) == program

    check()


@DRAWN
@given(st.lists(st.integers(-40, 40)).map(tuple))
def test_any_rows_round_trip(rows: tuple[int, ...]) -> None:
    step = Write("r0", rows)
    assert parse_program(str(step)) == Program((step,))


# -- what cannot be read ---------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        "wrote r0 at 4",
        "write r0",
        "write r0 at",
        "write r0 at 4 state x",
        "write r0 at 4 int32",
        "write r-0 at 4",
        "offload r0",
        "offload r0[1] as c0",
        "offload r0[-1:2] as c0",
        "offload r0 as c0 int8",
        "offload r0 as c0 host state 3",
        "reload c0 at 4 5",
        "reload c0 at 4  state 3",
        "overwrite c0",
        "scribble",
        "foreign c0",
        "foreign c0 of -1",
        "Overwrite",
    ],
)
def test_step_that_cannot_be_read_is_named(step: str) -> None:
    with pytest.raises(ValueError, match="^program: cannot read the step ") as caught:
        parse_program(f"overwrite; {step}; scribble c0")
    assert f"the step {step!r}; a program looks like 'write r0 at 4..6;" in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ("4,,5", ""),
        ("4...6", "4...6"),
        ("x", "x"),
        ("4,5..y", "5..y"),
        ("4..", "4.."),
        ("4-6", "4-6"),
    ],
)
def test_rows_that_cannot_be_read_are_named(rows: str, named: str) -> None:
    with pytest.raises(ValueError, match="is not a row or a range of rows") as caught:
        parse_program(f"write r0 at {rows}")
    assert str(caught.value).startswith(f"program: {named!r} is not a row")


@pytest.mark.parametrize("call", ["overwrite", "write r0 at 4", "refuse offload r0 as c0"])
def test_only_calls_can_be_refused(call: str) -> None:
    with pytest.raises(ValueError, match="^program: only offload and reload can be refused"):
        parse_program(f"refuse {call}")


# -- replays -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("overwrite", ("", "overwrite")),
        ("size=20 page_size=4 | overwrite", ("size=20 page_size=4 ", " overwrite")),
        ("| overwrite", ("", " overwrite")),
    ],
)
def test_replay_in_its_two_parts(text: str, parts: tuple[str, str]) -> None:
    assert split_replay(text) == parts


def test_finding_prints_what_a_replay_reads() -> None:
    geometry = parse_geometry("", POOLS["token"])
    program = parse_program("write r0 at 5; offload r0 as c0; overwrite; reload c0 at 6")
    finding = Finding("token", geometry, program, 3, "a difference")
    lines = str(finding.violation("any_rows_in_any_order", "test_x")).splitlines()
    assert lines == [
        f"any_rows_in_any_order: {CLAUSES['any_rows_in_any_order'].sentence}",
        "",
        "  pool      token",
        f"  geometry  {geometry}",
        "  program   write r0 at 5",
        "            offload r0 as c0",
        "            overwrite",
        "            reload c0 at 6",
        "  after     reload c0 at 6",
        "  found     a difference",
        f"  replay    pytest -k 'test_x[token]' --kv-replay '{finding.replay}'",
    ]


def test_a_range_that_runs_backwards_is_refused() -> None:
    with pytest.raises(ValueError, match="'6..4' runs backwards"):
        parse_program("write r0 at 6..4")
