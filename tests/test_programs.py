"""Programs as text: printed on one line, and read back."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from typing import Any, get_args

import pytest
from drawn_programs import ALLOCATORS, DECLARED, POOLS, TIERS, pool_of, seeded
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import programs, scenarios
from conformance.contract import CLAUSES
from conformance.geometry import parse_geometry
from conformance.programs import (
    BEGIN_GROUP,
    CLEAR,
    CLOSE,
    COMPACT,
    END_GROUP,
    OVERWRITE,
    SCRIBBLE_IDS,
    Await,
    BackUp,
    Bare,
    Claim,
    CopyState,
    Drop,
    Extend,
    Foreign,
    Form,
    Free,
    Load,
    Move,
    Offload,
    Poll,
    Program,
    Read,
    Refuse,
    Reload,
    Resume,
    Retract,
    Scribble,
    Share,
    Slide,
    Use,
    Write,
    ZeroState,
    parse_program,
)
from conformance.violation import Finding, split_replay

EVERY: list[scenarios.Scenario] = [
    found
    for name in scenarios.__all__
    if inspect.isfunction(found := getattr(scenarios, name))
    and list(inspect.signature(found).parameters) == ["s"]
]
NEED_STATE = (scenarios.state_copied, scenarios.state_zeroed)
DRAWN = settings(derandomize=True, database=None, deadline=None, max_examples=100)

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


STEPS = [
    (Write("r0", (4,)), "write r0 at 4"),
    (Write("r0", (4, 5, 6), 3), "write r0 at 4..6 state 3"),
    (Write("r0", ()), "write r0 at none"),
    (Write("r0", (), 3), "write r0 at none state 3"),
    (Extend("r0", (7, 9)), "extend r0 at 7,9"),
    (Extend("r0", ()), "extend r0 at none"),
    (Extend("r0", tokens=3), "extend r0 by 3"),
    (Extend("r0", tokens=0), "extend r0 by 0"),
    (Claim("bad", (-1, 4)), "claim bad at -1,4"),
    (Offload("r0", "c0"), "offload r0 as c0"),
    (Offload("r0", "c0", 3), "offload r0 as c0 state 3"),
    (Offload("r0", "c0", None, 0, 2), "offload r0[0:2] as c0"),
    (Offload("r0", "c0", 3, 2, 5), "offload r0[2:5] as c0 state 3"),
    (Offload("r0", "c0", None, 2, 2), "offload r0[2:2] as c0"),
    (Offload("r0", "c0", None, 0, 0), "offload r0[0:0] as c0"),
    (Offload("r0", "c0", None, 3), "offload r0[3:] as c0"),
    (Offload("r0", "c0", form=Form("int32", True)), "offload r0 as c0 int32 host"),
    (Reload("c0", (9, 8, 12)), "reload c0 at 9,8,12"),
    (Reload("c0", (9,), 5), "reload c0 at 9 state 5"),
    (Reload("c0", ()), "reload c0 at none"),
    (
        Reload("c0", (9,), 5, Form(strided=True, scalar_state=True)),
        "reload c0 at 9 state 5 strided scalar",
    ),
    (Retract("r0", "c0"), "retract r0 as c0"),
    (Resume("r0", "c0"), "resume r0 from c0"),
    (Resume("r0", "c0", None, 3), "resume r0 from c0 state 3"),
    (Resume("r0", "c0", (9, 8), 3), "resume r0 from c0 at 9,8 state 3"),
    (Resume("r0", "c0", ()), "resume r0 from c0 at none"),
    (Free(("r0",)), "free r0"),
    (Free(("r0", "r1")), "free r0,r1"),
    (Free(("r0", "r0"), 4), "free r0,r0[4:]"),
    (Share("r0", "r1", 4), "share r0[:4] as r1"),
    (Slide("r0", 4, 7), "slide r0[4:7]"),
    (Move("r0", (3, 4), (0, 1)), "move r0[3..4] to [0..1]"),
    (Move("r0", (), ()), "move r0[none] to [none]"),
    (CopyState(1, 2), "copy state 1 to 2"),
    (ZeroState(3), "zero state 3"),
    (Scribble("c0"), "scribble c0"),
    (Foreign("foreign", 3), "foreign foreign of 3"),
    (Foreign("foreign", 0), "foreign foreign of 0"),
    (BackUp("r0"), "back up r0"),
    (Load("r0", (8, 9)), "load r0 at 8..9"),
    (Load("r0", (8,), 3), "load r0 at 8 state 3"),
    (Await("backup", "r0"), "await backup of r0"),
    (Await("load", "r0"), "await load of r0"),
    (Poll("backup", "r0"), "poll backup of r0"),
    (Poll("load", "r0"), "poll load of r0"),
    (Use("r0"), "use r0"),
    (Read("r0"), "read r0"),
    (Drop("r0"), "drop r0"),
    (OVERWRITE, "overwrite"),
    (CLEAR, "clear"),
    (BEGIN_GROUP, "begin group"),
    (END_GROUP, "end group"),
    (COMPACT, "compact"),
    (SCRIBBLE_IDS, "overwrite ids"),
    (CLOSE, "close"),
    (Refuse(Offload("bad", "none")), "refuse offload bad as none"),
    (Refuse(Reload("c0", (-1,), 2)), "refuse reload c0 at -1 state 2"),
    (Refuse(Free(("r0", "r0"))), "refuse free r0,r0"),
    (Refuse(Move("bad", (0,), (1,))), "refuse move bad[0] to [1]"),
    (Refuse(Drop("r0")), "refuse drop r0"),
]


@pytest.mark.parametrize(("step", "text"), STEPS, ids=[text for _, text in STEPS])
def test_step_as_text_and_back(step: Any, text: str) -> None:
    assert str(step) == text
    assert parse_program(text) == Program((step,))


def test_every_step_there_is_prints_and_parses() -> None:
    kinds = set(get_args(programs.Step))
    assert {type(step) for step, _ in STEPS} == kinds
    not_steps = {Form, Program}
    defined = {
        kind
        for _, kind in inspect.getmembers(programs, dataclasses.is_dataclass)
        if inspect.isclass(kind)
    }
    assert defined - not_steps == kinds


def test_every_verb_without_arguments_prints_and_parses() -> None:
    verbs = set(get_args(programs.Verb))
    assert {step.verb for step, _ in STEPS if isinstance(step, Bare)} == verbs


def test_no_two_steps_print_the_same() -> None:
    assert len({text for _, text in STEPS}) == len(STEPS)


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
    assert parse_program("  overwrite ;scribble c0;  ") == Program((OVERWRITE, Scribble("c0")))


def drawn_by(name: str) -> list[scenarios.Scenario]:
    """The scenarios from which programs for this pool, allocator or host tier are drawn."""
    if name in ALLOCATORS:
        return list(scenarios.ALLOCATIONS)
    if name in TIERS:
        return list(scenarios.TIERS)
    others = (*scenarios.ALLOCATIONS, *scenarios.TIERS)
    on_pools = [scenario for scenario in EVERY if scenario not in others]
    return [s for s in on_pools if s not in NEED_STATE or POOLS[name].has_state]


def test_every_scenario_is_tried() -> None:
    groups = (*scenarios.ALL, *scenarios.LIVES, *scenarios.ALLOCATIONS, *scenarios.TIERS)
    assert set(groups) <= set(EVERY)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", DECLARED)
def test_drawn_program_is_one_line_and_reads_back(name: str, seed: int) -> None:
    for scenario in drawn_by(name):
        geometry, program = seeded(name, scenario, seed)
        assert program.steps
        assert "\n" not in str(program)
        assert parse_program(str(program)) == program
        for step in program:
            assert parse_program(str(step)).steps == (step,)
        sizes, steps = split_replay(Finding(name, geometry, program, 0, "").replay)
        assert parse_geometry(sizes, pool_of(name)) == geometry
        assert parse_program(steps) == program


def test_every_step_there_is_is_drawn() -> None:
    """By some scenario, for some pool, allocator or host tier."""
    seen: set[str] = set()
    for name, seed in itertools.product(DECLARED, range(8)):
        for scenario in drawn_by(name):
            _, program = seeded(name, scenario, seed)
            seen |= {str(s) if isinstance(s, Bare) else type(s).__name__ for s in program}
    kinds = {kind.__name__ for kind in get_args(programs.Step)}
    assert seen == kinds - {"Bare"} | set(get_args(programs.Verb))


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
        "offload r0[:2] as c0",
        "offload r0[-1:2] as c0",
        "offload r0 as c0 int8",
        "offload r0 as c0 host state 3",
        "reload c0 at 4 5",
        "reload c0 at 4  state 3",
        "overwrite c0",
        "scribble",
        "foreign c0",
        "foreign c0 of -1",
        "extend r0",
        "extend r0 by",
        "extend r0 by -1",
        "extend r0 at 4 by 3",
        "retract r0",
        "resume r0",
        "resume r0 from c0 at 4 host",
        "free",
        "free r0 r1",
        "free r0[:4]",
        "share r0 as r1",
        "share r0[4:] as r1",
        "slide r0",
        "move r0[0]",
        "move r0 to r1",
        "copy state 1",
        "zero state",
        "begin",
        "end groups",
        "clear r0",
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
    with pytest.raises(ValueError, match="^program: cannot read the step ") as caught:
        parse_program(f"overwrite; refuse {call}")
    assert f"the step {f'refuse {call}'!r};" in str(caught.value)


@pytest.mark.parametrize("call", ["offload r0", "reload c0", "free r0 r1", "move r0[0]"])
def test_refused_call_that_cannot_be_read_is_named(call: str) -> None:
    with pytest.raises(ValueError, match="^program: cannot read the step ") as caught:
        parse_program(f"refuse {call}")
    assert f"the step {call!r};" in str(caught.value)


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
