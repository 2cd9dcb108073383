"""Offload and reload: one request, two, one in parts, one twice, none."""

from __future__ import annotations

from dataclasses import replace

from conformance.index_sets import draw_rows, draw_rows_like
from conformance.programs import Reload, Scribble
from conformance.scenarios.script import Scenario, Script


def other_rows(s: Script) -> None:
    """Saved from some rows, reloaded into others."""
    rows, start = draw_rows(s.draw, s.space)
    target = s.elsewhere(rows, start)
    write, copy = s.saved(rows)
    s.reload(copy, target, write)


def same_rows(s: Script) -> None:
    """Saved from some rows and reloaded into them: the identity case."""
    rows, _ = draw_rows(s.draw, s.space)
    s.round_trip(s.write(rows), rows)


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
    again = rows if s.draw(2) else s.elsewhere(rows, start)
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
    at = 1 + s.draw(len(rows) - 1)
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
    ALL[s.draw(len(ALL))](s)
