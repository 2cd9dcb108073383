"""Illegal calls: each is refused, one after another, between a legal offload and a legal reload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.index_sets import draw_rows
from conformance.programs import PLAIN, Claim, Foreign, Form, Move, Offload, Refuse, Reload, Write
from conformance.scenarios.script import Script
from conformance.step_text import Rows


@dataclass(frozen=True, slots=True)
class _Saved:
    """A request of which there is a copy."""

    rows: Rows
    start: int
    write: Write
    copy: str


Illegal = Callable[[Script, _Saved], None]


def out_of_range(s: Script, saved: _Saved) -> None:
    _refused(s, saved, _with(s, s.geometry.token_rows + s.draw(300)))


def negative(s: Script, saved: _Saved) -> None:
    _refused(s, saved, _with(s, -1 - s.draw(s.geometry.token_rows)))


def reserved(s: Script, saved: _Saved) -> None:
    _refused(s, saved, _with(s, s.draw(s.geometry.page_size)))


def wrong_dtype(s: Script, saved: _Saved) -> None:
    _refused(s, saved, lambda rows: rows, form=Form(dtype="float32"))


def duplicate(s: Script, saved: _Saved) -> None:
    """One id twice: as one more, or in the place of another."""
    if s.draw(2) or len(saved.rows) == 1:
        s.steps.append(Claim("bad", (*saved.rows, saved.rows[s.draw(len(saved.rows))])))
        s.steps.append(Refuse(Offload("bad", "none", saved.write.state)))
    else:
        target, at = s.elsewhere(saved.rows, saved.start), s.draw(len(saved.rows) - 1)
        bad = (*target[: at + 1], target[at], *target[at + 2 :])
        s.steps.append(Refuse(Reload(saved.copy, bad, saved.write.state)))


def wrong_length(s: Script, saved: _Saved) -> None:
    """A copy reloaded into fewer rows, or into none."""
    target = s.elsewhere(saved.rows, saved.start)[: s.draw(len(saved.rows))]
    s.steps.append(Refuse(Reload(saved.copy, target, saved.write.state)))


def foreign_copy(s: Script, saved: _Saved) -> None:
    """A copy made by a pool with one layer more."""
    s.steps.append(Foreign("foreign", len(saved.rows)))
    s.steps.append(Refuse(Reload("foreign", s.elsewhere(saved.rows, 0))))


def unwanted_state(s: Script, saved: _Saved) -> None:
    """State ids given to a pool without state."""
    calls = Offload(saved.write.request, "none", 1), Reload(saved.copy, saved.rows, 1)
    s.steps.append(Refuse(calls[s.draw(2)]))


def state_mismatch(s: Script, saved: _Saved) -> None:
    """A copy with state reloaded without, or the other way round."""
    state = s.other_state() if saved.write.state is None else None
    s.steps.append(Refuse(Reload(saved.copy, saved.rows, state)))


def illegal_move(s: Script, saved: _Saved) -> None:
    """After a legal move, a target that is a source, or one of the two that is no row."""
    if len(saved.rows) == 1:
        return
    s.steps.append(Move(saved.write.request, (1,), (0,)))
    row, end = saved.rows[0], s.geometry.token_rows
    bad = ((row, row), (row, end), (row, -1), (row, 0))
    s.steps.append(Claim("bad", bad[s.draw(len(bad))]))
    sources, targets = ((0,), (1,)) if s.draw(2) else ((1,), (0,))
    s.steps.append(Refuse(Move("bad", sources, targets)))


KINDS: dict[str, Illegal] = {
    "out_of_range_ids_are_refused": out_of_range,
    "negative_ids_are_refused": negative,
    "reserved_rows_are_refused": reserved,
    "duplicate_ids_are_refused": duplicate,
    "wrong_dtype_is_refused": wrong_dtype,
    "wrong_length_is_refused": wrong_length,
    "foreign_copy_is_refused": foreign_copy,
    "state_is_refused_not_dropped": unwanted_state,
    "state_mismatch_is_refused": state_mismatch,
    "illegal_move_is_refused": illegal_move,
}
"""Each kind of illegal call, by the clause under which it is refused."""


def refusals(s: Script) -> None:
    """Every kind of illegal call that the pool defines, then the legal reload."""
    rows, start = draw_rows(s.draw, s.space)
    write, copy = s.saved(rows)
    for clause, illegal in KINDS.items():
        if _is_defined(s, clause):
            s.draw.apart()
            illegal(s, _Saved(rows, start, write, copy))
    s.draw.apart()
    s.reload(copy, s.elsewhere(rows, start), write)


def _is_defined(s: Script, clause: str) -> bool:
    """What a pool leaves undefined may do anything, so it is not called."""
    other_kind = "state_is_refused_not_dropped" if s.pool.has_state else "state_mismatch_is_refused"
    if clause == "illegal_move_is_refused" and not s.can("move"):
        return False
    if not s.can("state") and "state" in clause:
        return False
    return clause != other_kind and clause not in s.pool.undefined


def _refused(
    s: Script, saved: _Saved, illegal: Callable[[Rows], Rows], *, form: Form = PLAIN
) -> None:
    """An offload or a reload of rows that `illegal` has changed."""
    state = saved.write.state
    if s.draw(2):
        s.steps.append(Claim("bad", illegal(saved.rows)))
        s.steps.append(Refuse(Offload("bad", "none", state, form=form)))
    else:
        bad = illegal(s.elsewhere(saved.rows, saved.start))
        s.steps.append(Refuse(Reload(saved.copy, bad, state, form)))


def _with(s: Script, value: int) -> Callable[[Rows], Rows]:
    """One id replaced by `value`."""

    def replaced(rows: Rows) -> Rows:
        at = s.draw(len(rows))
        return (*rows[:at], value, *rows[at + 1 :])

    return replaced
