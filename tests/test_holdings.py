"""Who holds which rows at a step of a program, and the plain program of its copies."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.holdings import Holdings, plain, reload_of
from conformance.programs import Offload, Reload, Write, parse_program


def after(text: str) -> Holdings:
    return Holdings.after(parse_program(text).steps)


@pytest.mark.parametrize(
    ("text", "rows", "states"),
    [
        ("write r0 at 5..6 state 3", {"r0": (5, 6)}, {"r0": 3}),
        ("write r0 at 5 state 3; extend r0 at 9,7", {"r0": (5, 9, 7)}, {"r0": 3}),
        ("extend r0 at 5", {"r0": (5,)}, {}),
        ("write r0 at 5..6; move r0[1] to [0]", {"r0": (5, 6)}, {"r0": None}),
        ("write r0 at 5..9; free r0[2:]", {"r0": (5, 6)}, {"r0": None}),
        (
            "write r0 at 5; write r1 at 6; free r0,r1",
            {"r0": (), "r1": ()},
            {"r0": None, "r1": None},
        ),
        ("write r0 at 5; write r0 at 8", {"r0": (8,)}, {"r0": None}),
        ("claim bad at -1", {"bad": (-1,)}, {"bad": None}),
        ("resume r0 from c0 at 8,9 state 4", {"r0": (8, 9)}, {"r0": 4}),
        ("extend r0 by 3", {"r0": ()}, {}),
        ("overwrite; copy state 1 to 2; zero state 3", {}, {}),
    ],
)
def test_rows_and_states_are_followed(text: str, rows: Any, states: Any) -> None:
    holdings = after(text)
    assert (holdings.rows, holdings.states) == (rows, states)


@pytest.mark.parametrize(
    ("text", "write", "offload"),
    [
        (
            "write r0 at 5 state 3; extend r0 at 9; retract r0 as c0",
            Write("r0", (5, 9), 3),
            Offload("r0", "c0", 3),
        ),
        (
            "write r0 at 5..9; move r0[4] to [0]; offload r0[1:3] as c0 host",
            Write("r0", (6, 7)),
            "offload r0 as c0 host",
        ),
        (
            "write r0 at 5 state 3; offload r0 as c0 state 3; resume r1 from c0 at 7 state 4; "
            "retract r1 as c0",
            Write("r1", (7,), 4),
            Offload("r1", "c0", 4),
        ),
        (
            "write r0 at 5..7; free r0[1:]; extend r0 at 9; retract r0 as c0; write r0 at 20",
            Write("r0", (5, 9)),
            Offload("r0", "c0"),
        ),
    ],
)
def test_copy_is_one_write_and_one_offload(text: str, write: Write, offload: Any) -> None:
    taken = after(text).copies["c0"]
    assert taken.write == write
    assert str(taken.offload) == str(offload)


def test_resume_is_a_reload() -> None:
    steps = parse_program(
        "resume r0 from c0 at 8 state 4; reload c0 at 8; free r0; resume r1 from c0"
    )
    assert [reload_of(step) for step in steps] == [
        Reload("c0", (8,), 4),
        Reload("c0", (8,)),
        None,
        Reload("c0", ()),
    ]


def test_plain_program_has_only_copies_and_reloads() -> None:
    text = (
        "write r0 at 5; extend r0 at 9; move r0[1] to [0]; retract r0 as c0; "
        "write r1 at 5..9; offload r1[1:3] as c1; free r1; refuse reload c1 at 5; "
        "resume r0 from c0 at 7,8; scribble c1; retract r0 as c2; reload c2 at 20..21"
    )
    assert str(plain(parse_program(text))) == (
        "write r0 at 5,9; offload r0 as c0; write r1 at 6..7; offload r1 as c1; "
        "overwrite; reload c0 at 7..8; write r0 at 7..8; offload r0 as c2; "
        "overwrite; reload c2 at 20..21"
    )
