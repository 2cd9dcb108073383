"""Programs: operations on one pool, as data that prints on one line and parses back.

    write r0 at 4..6 state 3; offload r0 as c0 state 3; overwrite; reload c0 at 9,8,12 state 5

Rows are row ids of the token buffers; `4..6` includes both ends. `none` is no rows.
Words at the end of offload and reload give the form of the id tensors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Rows = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """How ids are handed to the pool: dtype, place, strides; and whether a state id is 0-dim."""

    dtype: Literal["int64", "int32", "float32"] = "int64"
    on_host: bool = False
    strided: bool = False
    scalar_state: bool = False

    def __str__(self) -> str:
        words: list[str] = [self.dtype] if self.dtype != "int64" else []
        words += [word for word, attribute in _FORM_FLAGS.items() if getattr(self, attribute)]
        return "".join(f" {word}" for word in words)


PLAIN = Form()
_FORM_FLAGS = {"host": "on_host", "strided": "strided", "scalar": "scalar_state"}


@dataclass(frozen=True, slots=True)
class Write:
    """New bytes for `request`, token i at `rows[i]`, and for its state row if it has one."""

    request: str
    rows: Rows
    state: int | None = None

    def __str__(self) -> str:
        return f"write {self.request} at {_rows_text(self.rows)}{_state_text(self.state)}"


@dataclass(frozen=True, slots=True)
class Claim:
    """`request` names rows that are not its own, perhaps not even rows; nothing is written."""

    request: str
    rows: Rows

    def __str__(self) -> str:
        return f"claim {self.request} at {_rows_text(self.rows)}"


@dataclass(frozen=True, slots=True)
class Offload:
    """Copy to the host the tokens `start .. stop - 1` of `request` (all where stop is None)."""

    request: str
    copy: str
    state: int | None = None
    start: int = 0
    stop: int | None = None
    form: Form = PLAIN

    def __str__(self) -> str:
        stop = "" if self.stop is None else self.stop
        part = f"[{self.start}:{stop}]" if self.start or self.stop is not None else ""
        state = _state_text(self.state)
        return f"offload {self.request}{part} as {self.copy}{state}{self.form}"


@dataclass(frozen=True, slots=True)
class Reload:
    """Load `copy` into `rows` and into the state row `state`."""

    copy: str
    rows: Rows
    state: int | None = None
    form: Form = PLAIN

    def __str__(self) -> str:
        return f"reload {self.copy} at {_rows_text(self.rows)}{_state_text(self.state)}{self.form}"


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Every row of every buffer gets new bytes that belong to no request."""

    def __str__(self) -> str:
        return "overwrite"


@dataclass(frozen=True, slots=True)
class Scribble:
    """Overwrite the host memory of `copy`, which is of no use after this."""

    copy: str

    def __str__(self) -> str:
        return f"scribble {self.copy}"


@dataclass(frozen=True, slots=True)
class Foreign:
    """A copy of `tokens` tokens that was made by a pool of another geometry."""

    copy: str
    tokens: int

    def __str__(self) -> str:
        return f"foreign {self.copy} of {self.tokens}"


@dataclass(frozen=True, slots=True)
class Refuse:
    """An illegal call: it must raise, and nothing may change."""

    call: Offload | Reload

    def __str__(self) -> str:
        return f"refuse {self.call}"


Step = Write | Claim | Offload | Reload | Overwrite | Scribble | Foreign | Refuse


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in order. The pool begins with bytes of nobody in every row."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps))

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)


def parse_program(text: str) -> Program:
    """Read `str(program)` back. `ValueError` names the step that cannot be read."""
    return Program(tuple(_parse_step(step.strip()) for step in text.split(";") if step.strip()))


_TAIL = r"(?: state (?P<state>-?\d+))?(?P<form>(?: (?:int32|float32|host|strided|scalar))*)"
_GRAMMAR: tuple[tuple[str, Callable[[dict[str, str]], Step]], ...] = (
    (
        r"write (?P<name>\w+) at (?P<rows>\S+)(?: state (?P<state>-?\d+))?",
        lambda m: Write(m["name"], _parse_rows(m["rows"]), _parse_state(m)),
    ),
    (
        r"claim (?P<name>\w+) at (?P<rows>\S+)",
        lambda m: Claim(m["name"], _parse_rows(m["rows"])),
    ),
    (
        r"offload (?P<name>\w+)(?:\[(?P<start>\d+):(?P<stop>\d*)\])? as (?P<copy>\w+)" + _TAIL,
        lambda m: Offload(
            m["name"],
            m["copy"],
            _parse_state(m),
            int(m["start"] or 0),
            int(m["stop"]) if m["stop"] else None,
            _parse_form(m["form"]),
        ),
    ),
    (
        r"reload (?P<copy>\w+) at (?P<rows>\S+)" + _TAIL,
        lambda m: Reload(
            m["copy"], _parse_rows(m["rows"]), _parse_state(m), _parse_form(m["form"])
        ),
    ),
    (r"overwrite", lambda _: Overwrite()),
    (r"scribble (?P<copy>\w+)", lambda m: Scribble(m["copy"])),
    (
        r"foreign (?P<copy>\w+) of (?P<tokens>\d+)",
        lambda m: Foreign(m["copy"], int(m["tokens"])),
    ),
)


def _parse_step(text: str) -> Step:
    if text.startswith("refuse "):
        call = _parse_step(text.removeprefix("refuse "))
        if isinstance(call, Offload | Reload):
            return Refuse(call)
        raise ValueError(f"program: only offload and reload can be refused, got {text!r}")
    for pattern, build in _GRAMMAR:
        match = re.fullmatch(pattern, text)
        if match:
            return build(match.groupdict())
    raise ValueError(
        f"program: cannot read the step {text!r}; a program looks like "
        "'write r0 at 4..6; offload r0 as c0; overwrite; reload c0 at 9,8,12'"
    )


def _parse_state(groups: dict[str, str]) -> int | None:
    return int(groups["state"]) if groups["state"] else None


def _parse_form(text: str) -> Form:
    words = text.split()
    return Form(
        "int32" if "int32" in words else "float32" if "float32" in words else "int64",
        on_host="host" in words,
        strided="strided" in words,
        scalar_state="scalar" in words,
    )


def _state_text(state: int | None) -> str:
    return "" if state is None else f" state {state}"


def _rows_text(rows: Rows) -> str:
    if not rows:
        return "none"
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    return ",".join(str(a) if a == b else f"{a}..{b}" for a, b in runs)


def _parse_rows(text: str) -> Rows:
    if text == "none":
        return ()
    rows: list[int] = []
    for run in text.split(","):
        match = re.fullmatch(r"(-?\d+)(?:\.\.(-?\d+))?", run)
        if not match:
            raise ValueError(f"program: {run!r} is not a row or a range of rows such as 4..6")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"program: {run!r} runs backwards; list the rows instead")
        rows.extend(range(first, last + 1))
    return tuple(rows)
