"""Strategies for whole programs: for each clause, those that can break it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from hypothesis import strategies as st

from conformance.geometry import Geometry, geometries
from conformance.index_sets import (
    Draw,
    Space,
    draw_form,
    draw_index,
    draw_rows,
    draw_rows_like,
    draw_state,
)
from conformance.pool import Pool
from conformance.programs import (
    PLAIN,
    Claim,
    Foreign,
    Form,
    Offload,
    Overwrite,
    Program,
    Refuse,
    Reload,
    Rows,
    Scribble,
    Step,
    Write,
)

StateUse = Literal["any", "always", "never"]


@dataclass(slots=True)
class Script:
    """A program being written: what was drawn so far, and names not yet used."""

    draw: Draw
    pool: Pool
    geometry: Geometry
    state: StateUse = "any"
    steps: list[Step] = field(default_factory=list)
    requests: int = 0
    copies: int = 0

    @property
    def space(self) -> Space:
        return Space(self.geometry, self.pool.ids == "page")

    def new_state(self) -> int | None:
        """A state id, where the pool has state and this program uses it."""
        if not self.pool.has_state or self.state == "never" or "state" in self.pool.lacks:
            return None
        if self.state == "always":
            return self.other_state()
        size = self.geometry.state_size
        drawn = draw_index(self.draw, size + 1 + size // 2)
        return None if drawn == 0 or drawn > size else drawn

    def forms(self) -> tuple[Form, Form]:
        """How ids are passed to offload and to reload; a state id is 0-dim in both or neither."""
        first = draw_form(self.draw, has_state=self.pool.has_state)
        second = draw_form(self.draw, has_state=False)
        return first, replace(second, scalar_state=first.scalar_state)

    def write(self, rows: Rows) -> Write:
        """A new request in `rows`."""
        step = Write(f"r{self.requests}", rows, self.new_state())
        self.requests += 1
        self.steps.append(step)
        return step

    def offload(
        self, write: Write, *, form: Form = PLAIN, part: tuple[int, int] | None = None
    ) -> str:
        name = f"c{self.copies}"
        self.copies += 1
        start, stop = part if part else (0, None)
        self.steps.append(Offload(write.request, name, write.state, start, stop, form))
        return name

    def reload(self, copy: str, rows: Rows, of: Write, *, form: Form = PLAIN) -> None:
        state = None if of.state is None else self.other_state()
        self.steps.append(Reload(copy, rows, state, form))

    def saved(self, rows: Rows) -> tuple[Write, str]:
        """A new request in `rows`, offloaded, and its rows overwritten: the write, the copy."""
        write = self.write(rows)
        copy = self.offload(write)
        self.overwrite()
        return write, copy

    def other_state(self) -> int:
        return draw_state(self.draw, self.geometry)

    def elsewhere(self, rows: Rows, start: int) -> Rows:
        return draw_rows_like(self.draw, self.space, len(rows), start)

    def overwrite(self) -> None:
        self.steps.append(Overwrite())


Scenario = Callable[[Script], None]


def other_rows(s: Script) -> None:
    """Saved from some rows, reloaded into others."""
    rows, start = draw_rows(s.draw, s.space)
    target = s.elsewhere(rows, start)
    write, copy = s.saved(rows)
    s.reload(copy, target, write)


def same_rows(s: Script) -> None:
    """Saved from some rows and reloaded into them: the identity case."""
    rows, _ = draw_rows(s.draw, s.space)
    write, copy = s.saved(rows)
    s.steps.append(Reload(copy, rows, write.state))


def every_form(s: Script) -> None:
    """The ids of both calls in any form."""
    rows, start = draw_rows(s.draw, s.space)
    target = s.elsewhere(rows, start)
    write = s.write(rows)
    first, second = s.forms()
    copy = s.offload(write, form=first)
    s.overwrite()
    s.reload(copy, target, write, form=second)


def repeated(s: Script) -> None:
    """One copy, reloaded twice into different rows."""
    rows, start = draw_rows(s.draw, s.space)
    first, second = s.elsewhere(rows, start), s.elsewhere(rows, start)
    write, copy = s.saved(rows)
    s.reload(copy, first, write)
    s.overwrite()
    s.reload(copy, second, write)


def two_copies(s: Script) -> None:
    """Two requests that used the same or other rows, both copies alive, reloaded in turn."""
    rows, start = draw_rows(s.draw, s.space)
    again = rows if draw_index(s.draw, 2) else s.elsewhere(rows, start)
    older = s.write(rows)
    older_copy = s.offload(older)
    newer = s.write(again)
    newer_copy = s.offload(newer)
    s.overwrite()
    s.reload(newer_copy, s.elsewhere(again, start), newer)
    s.reload(older_copy, s.elsewhere(rows, start), older)


def split(s: Script) -> None:
    """One request in two parts, each with a copy of its own."""
    rows, start = draw_rows(s.draw, s.space)
    if len(rows) == 1:
        rows, start = draw_rows_like(s.draw, s.space, min(3, s.geometry.size), start=0), 0
    if len(rows) == 1:  # the pool has no more
        other_rows(s)
        return
    target = s.elsewhere(rows, start)
    at = 1 + draw_index(s.draw, len(rows) - 1)
    write = s.write(rows)
    head = s.offload(write, part=(0, at))
    tail = s.offload(replace(write, state=None), part=(at, len(rows)))
    s.overwrite()
    s.reload(head, target[:at], write)
    s.steps.append(Reload(tail, target[at:]))


def separate_memory(s: Script) -> None:
    """The pool is written while a copy is alive, and the copy is written while the pool is."""
    rows, start = draw_rows(s.draw, s.space)
    write = s.write(rows)
    first, second = s.forms()
    lost, kept = s.offload(write, form=first), s.offload(write, form=second)
    s.steps.append(replace(write, request=f"r{s.requests}"))
    s.requests += 1
    s.steps.append(Scribble(lost))
    s.reload(kept, s.elsewhere(rows, start), write, form=second)


def empty(s: Script) -> None:
    """No rows at all, beside a request that has some."""
    other_rows(s)
    write = s.write(())
    first, second = s.forms()
    copy = s.offload(write, form=first)
    s.overwrite()
    s.reload(copy, (), write, form=second)


ALL: tuple[Scenario, ...] = (
    other_rows,
    every_form,
    repeated,
    two_copies,
    split,
    separate_memory,
    same_rows,
)


def anything(s: Script) -> None:
    """Any of the scenarios."""
    ALL[draw_index(s.draw, len(ALL))](s)


def draw_geometry(draw: Draw, pool: Pool, device: str) -> Geometry:
    """One of the pool's geometries; shrinks to the first."""
    options = geometries(pool, device)
    return options[draw_index(draw, len(options))]


# -- illegal calls: each is refused between a legal offload and a legal reload ----------


def _refusal(s: Script, illegal: Callable[[Rows], Rows], *, form: Form = PLAIN) -> None:
    rows, start = draw_rows(s.draw, s.space)
    write, copy = s.saved(rows)
    if draw_index(s.draw, 2):
        s.steps.append(Claim("bad", illegal(rows)))
        s.steps.append(Refuse(Offload("bad", "none", write.state, form=form)))
    else:
        bad = illegal(s.elsewhere(rows, start))
        s.steps.append(Refuse(Reload(copy, bad, write.state, form)))
    s.reload(copy, s.elsewhere(rows, start), write)


def _with(s: Script, value: int) -> Callable[[Rows], Rows]:
    """One id replaced by `value`."""

    def replaced(rows: Rows) -> Rows:
        at = draw_index(s.draw, len(rows))
        return (*rows[:at], value, *rows[at + 1 :])

    return replaced


def out_of_range(s: Script) -> None:
    _refusal(s, _with(s, s.geometry.token_rows + draw_index(s.draw, 300)))


def negative(s: Script) -> None:
    _refusal(s, _with(s, -1 - draw_index(s.draw, s.geometry.token_rows)))


def reserved(s: Script) -> None:
    _refusal(s, _with(s, draw_index(s.draw, s.geometry.page_size)))


def wrong_dtype(s: Script) -> None:
    _refusal(s, lambda rows: rows, form=Form(dtype="float32"))


def wrong_length(s: Script) -> None:
    """A copy reloaded into fewer rows, or into none."""
    rows, start = draw_rows(s.draw, s.space)
    target = s.elsewhere(rows, start)
    write, copy = s.saved(rows)
    keep = draw_index(s.draw, len(rows))
    s.steps.append(Refuse(Reload(copy, target[:keep], write.state)))
    s.reload(copy, target, write)


def foreign_copy(s: Script) -> None:
    """A copy made by a pool with one layer more."""
    rows, start = draw_rows(s.draw, s.space)
    if start:
        rows, start = draw_rows_like(s.draw, s.space, min(3, s.geometry.size), 0), 0
    write, copy = s.saved(rows)
    s.steps.append(Foreign("foreign", len(rows)))
    s.steps.append(Refuse(Reload("foreign", rows)))
    s.reload(copy, s.elsewhere(rows, start), write)


def unwanted_state(s: Script) -> None:
    """State ids given to a pool without state."""
    rows, start = draw_rows(s.draw, s.space)
    write, copy = s.saved(rows)
    call = Offload(write.request, "none", 1), Reload(copy, rows, 1)
    s.steps.append(Refuse(call[draw_index(s.draw, 2)]))
    s.reload(copy, s.elsewhere(rows, start), write)


def state_mismatch(s: Script) -> None:
    """A copy with state reloaded without, or the other way round."""
    rows, start = draw_rows(s.draw, s.space)
    write, copy = s.saved(rows)
    state = s.other_state() if write.state is None else None
    s.steps.append(Refuse(Reload(copy, rows, state)))
    s.reload(copy, s.elsewhere(rows, start), write)


REFUSALS: tuple[Scenario, ...] = (
    out_of_range,
    negative,
    reserved,
    wrong_dtype,
    wrong_length,
    foreign_copy,
    unwanted_state,
    state_mismatch,
)
ONE_TRIP: tuple[Scenario, ...] = (other_rows, same_rows, every_form)


def most_requests(scenario: Scenario) -> int:
    """How many requests a program may have: more of the short ones, so that an example's
    fixed cost is spread over several round trips."""
    return 4 if scenario in ONE_TRIP else 1 if scenario in REFUSALS else 2


@st.composite
def programs(
    draw: Draw, pool: Pool, device: str, scenario: Scenario, state: StateUse = "any"
) -> tuple[Geometry, Program]:
    """A geometry, and a program of one or more requests of this scenario in one pool."""
    geometry = draw_geometry(draw, pool, device)
    script = Script(draw, pool, geometry, state)
    scenario(script)
    for _ in range(draw_index(draw, most_requests(scenario))):
        scenario(script)
    return geometry, Program(tuple(script.steps))
