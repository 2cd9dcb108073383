"""A program of request lives followed without a pool: who holds which rows, before each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from conformance.geometry import Geometry
from conformance.programs import (
    OVERWRITE,
    Extend,
    Free,
    Move,
    Offload,
    Program,
    Resume,
    Retract,
    Step,
    Write,
)
from conformance.step_text import Rows


@dataclass(frozen=True, slots=True)
class Saved:
    """A copy: which request it is of, its rows and state then, and the step that made it."""

    request: str
    rows: Rows
    state: int | None
    made: int
    retracted: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """Before step `number`: the rows and the state row of each request that is alive, and
    the copies that nobody has resumed from yet."""

    number: int
    step: Step
    rows: dict[str, Rows] = field(default_factory=dict)
    states: dict[str, int | None] = field(default_factory=dict)
    copies: dict[str, Saved] = field(default_factory=dict)

    def after(self, step: Step) -> Moment:
        """The next moment, at which `step` will run."""
        rows, states, copies = self.rows.copy(), self.states.copy(), self.copies.copy()
        match self.step:
            case Write(request, at, state):
                rows[request], states[request] = at, state
            case Extend(request, at):
                rows[request] += at or ()
            case Offload(request, copy) | Retract(request, copy):
                retracted = isinstance(self.step, Retract)
                taken = Saved(request, rows[request], states[request], self.number, retracted)
                copies[copy] = taken
                if retracted:
                    del rows[request], states[request]
            case Resume(request, copy, at, state):
                rows[request], states[request] = at or (), state
                del copies[copy]
            case Free(requests):
                for request in requests:
                    del rows[request], states[request]
            case Move():
                pass
            case _:
                assert self.step == OVERWRITE, f"{self.step} is no step of a request's life"
        return Moment(self.number + 1, step, rows, states, copies)

    def written(self, geometry: Geometry) -> Rows:
        """The rows that this step gives new bytes."""
        match self.step:
            case Write(_, at) | Extend(_, at) | Resume(_, _, at):
                return at or ()
            case Move(request, _, targets):
                return tuple(self.rows[request][at] for at in targets)
        every = range(geometry.page_size, geometry.token_rows)
        return tuple(every) if self.step == OVERWRITE else ()


def moments(program: Program) -> Iterator[Moment]:
    """Every step, and what there is before it."""
    moment = Moment(0, program.steps[0])
    yield moment
    for step in program.steps[1:]:
        moment = moment.after(step)
        yield moment


def problem(geometry: Geometry, moment: Moment, *, paged: bool) -> str:
    """What is illegal about a step of request lives; "" if nothing is."""
    step, rows, states = moment.step, moment.rows, moment.states
    match step:
        case Write(request, at, state):
            if request in rows:
                return f"{request} is alive"
            return _misplaced(geometry, moment, (), at, state, paged=paged)
        case Extend(request, at):
            if request not in rows or at is None:
                return f"{request} is not alive, or rows are missing"
            others = replace(moment, states={})
            return _misplaced(geometry, others, rows[request], at, None, paged=paged)
        case Offload(request, copy, state, start, stop):
            if (start, stop) != (0, None) or copy in moment.copies:
                return "not all of a request, or the copy exists"
            return "" if request in rows and states[request] == state else "not its state"
        case Retract(request, copy):
            return "" if request in rows and copy not in moment.copies else "not alive"
        case Resume(request, copy, at, state):
            saved = moment.copies.get(copy)
            if request in rows or saved is None or at is None:
                return f"{request} is alive, or {copy} is no copy"
            if len(saved.rows) != len(at) or (saved.state is None) != (state is None):
                return f"{copy} does not fit"
            return _misplaced(geometry, moment, (), at, state, paged=paged)
        case Free(requests, start):
            return "" if start == 0 and rows.keys() >= set(requests) else "not alive"
        case Move(request, sources, targets):
            places = (*sources, *targets)
            if len(sources) != len(targets) or len(set(places)) < len(places) or not places:
                return "positions are not disjoint pairs"
            within = set(range(len(rows.get(request, ()))))
            return "" if within >= set(places) else "positions are not the request's"
    return "" if step == OVERWRITE else "no step of a request's life"


def _misplaced(
    geometry: Geometry, moment: Moment, held: Rows, at: Rows, state: int | None, *, paged: bool
) -> str:
    """What is wrong with new rows `at` behind those `held`, and with a state row."""
    legal = range(geometry.page_size, geometry.token_rows)
    if not at or len(set(at)) < len(at) or not all(row in legal for row in at):
        return "rows are none, no rows, or twice the same"
    owned = {row for rows in moment.rows.values() for row in rows}
    if owned & set(at):
        return f"rows {owned & set(at)} have an owner"
    if state is not None and not 1 <= state < geometry.state_rows:
        return f"state row {state} does not exist"
    if state is not None and state in moment.states.values():
        return f"state row {state} has an owner"
    return _page_problem(geometry.page_size, moment, held, at) if paged else ""


def _page_problem(page: int, moment: Moment, held: Rows, at: Rows) -> str:
    last = held[-1] if held else None
    for row in at:
        if last is None or last % page == page - 1:
            if row % page:
                return f"row {row} enters a page in its middle"
        elif row != last + 1:
            return f"row {row} does not follow {last} in its page"
        last = row
    mine = {row // page for row in (*held, *at)}
    others = {row // page for rows in moment.rows.values() if rows != held for row in rows}
    return f"pages {mine & others} have two owners" if mine & others else ""
