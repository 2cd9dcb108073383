"""Illegal calls: each is refused between a legal offload and a legal reload."""

from __future__ import annotations

from collections.abc import Callable

from conformance.index_sets import draw_rows, draw_rows_like
from conformance.programs import PLAIN, Claim, Foreign, Form, Move, Offload, Refuse, Reload
from conformance.scenarios.script import Scenario, Script
from conformance.step_text import Rows


def _refusal(s: Script, illegal: Callable[[Rows], Rows], *, form: Form = PLAIN) -> None:
    rows, start = draw_rows(s.draw, s.space)
    write, copy = s.saved(rows)
    if s.draw(2):
        s.steps.append(Claim("bad", illegal(rows)))
        s.steps.append(Refuse(Offload("bad", "none", write.state, form=form)))
    else:
        bad = illegal(s.elsewhere(rows, start))
        s.steps.append(Refuse(Reload(copy, bad, write.state, form)))
    s.reload(copy, s.elsewhere(rows, start), write)


def _with(s: Script, value: int) -> Callable[[Rows], Rows]:
    """One id replaced by `value`."""

    def replaced(rows: Rows) -> Rows:
        at = s.draw(len(rows))
        return (*rows[:at], value, *rows[at + 1 :])

    return replaced


def out_of_range(s: Script) -> None:
    _refusal(s, _with(s, s.geometry.token_rows + s.draw(300)))


def negative(s: Script) -> None:
    _refusal(s, _with(s, -1 - s.draw(s.geometry.token_rows)))


def reserved(s: Script) -> None:
    _refusal(s, _with(s, s.draw(s.geometry.page_size)))


def wrong_dtype(s: Script) -> None:
    _refusal(s, lambda rows: rows, form=Form(dtype="float32"))


def wrong_length(s: Script) -> None:
    """A copy reloaded into fewer rows, or into none."""
    rows, start = draw_rows(s.draw, s.space)
    target = s.elsewhere(rows, start)
    write, copy = s.saved(rows)
    keep = s.draw(len(rows))
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
    s.steps.append(Refuse(call[s.draw(2)]))
    s.reload(copy, s.elsewhere(rows, start), write)


def state_mismatch(s: Script) -> None:
    """A copy with state reloaded without, or the other way round."""
    rows, start = draw_rows(s.draw, s.space)
    write, copy = s.saved(rows)
    state = s.other_state() if write.state is None else None
    s.steps.append(Refuse(Reload(copy, rows, state)))
    s.reload(copy, s.elsewhere(rows, start), write)


def duplicate(s: Script) -> None:
    """One id twice, as the next one's or the last one's."""
    rows, start = draw_rows(s.draw, s.space)
    write, copy = s.saved(rows)
    target = s.elsewhere(rows, start)
    if s.draw(2):
        s.steps.append(Claim("bad", _doubled(s, rows)))
        s.steps.append(Refuse(Offload("bad", "none", write.state)))
    elif len(rows) > 1:
        at = s.draw(len(rows) - 1)
        bad = (*target[: at + 1], target[at], *target[at + 2 :])
        s.steps.append(Refuse(Reload(copy, bad, write.state)))
    s.reload(copy, target, write)


def _doubled(s: Script, rows: Rows) -> Rows:
    return (*rows, rows[s.draw(len(rows))])


def illegal_move(s: Script) -> None:
    """After a legal move, a target that is a source, or one that is no row."""
    rows, start = draw_rows(s.draw, s.space)
    if len(rows) == 1:
        rows, start = draw_rows_like(s.draw, s.space, min(3, s.geometry.size), start=0), 0
    write, copy = s.saved(rows)
    if len(rows) > 1:
        s.steps.append(Move(write.request, (1,), (0,)))
    end = s.geometry.token_rows
    bad = ((rows[0], rows[0]), (rows[0], end), (rows[0], -1), (rows[0], 0))
    s.steps.append(Claim("bad", bad[s.draw(len(bad))]))
    sources, targets = ((0,), (1,)) if s.draw(2) else ((1,), (0,))
    s.steps.append(Refuse(Move("bad", sources, targets)))
    s.reload(copy, s.elsewhere(rows, start), write)


def refused_then_reloaded(s: Script) -> None:
    """A reload that is refused for any of these reasons, then the legal one."""
    REFUSED_RELOADS[s.draw(len(REFUSED_RELOADS))](s)


REFUSED_RELOADS: tuple[Scenario, ...] = (wrong_length, out_of_range, reserved)
REFUSALS: tuple[Scenario, ...] = (
    out_of_range,
    negative,
    reserved,
    duplicate,
    illegal_move,
    wrong_dtype,
    wrong_length,
    foreign_copy,
    unwanted_state,
    state_mismatch,
)
