"""Move, and what is done to state rows without a request."""

from __future__ import annotations

from conformance.index_sets import draw_rows, draw_rows_like
from conformance.programs import CopyState, Extend, Move, ZeroState
from conformance.scenarios.script import Script
from conformance.step_text import Rows


def positions(s: Script, tokens: int) -> tuple[Rows, Rows]:
    """Source and target positions of a move within a request of `tokens` tokens: sources
    behind their targets, side by side or with gaps, as accepted draft tokens lie."""
    count = 1 + s.draw(tokens // 2)
    spare = tokens - 2 * count
    first, gap = divmod(s.draw(2 * (spare + 1)), 2)
    behind = first + count
    room = tokens - behind
    step = 1 + gap if count + (count - 1) * gap <= room else 1
    start = tokens - (count - 1) * step - 1
    sources = tuple(start + at * step for at in range(count))
    return sources, tuple(range(first, first + count))


def moved(s: Script) -> None:
    """Tokens of one request are moved while another lives beside it."""
    rows, start = draw_rows(s.draw, s.space)
    if len(rows) == 1:
        rows, start = draw_rows_like(s.draw, s.space, min(3, s.geometry.size), start=0), 0
    write = s.write(rows)
    if len(rows) > 1:
        sources, targets = positions(s, len(rows))
        s.steps.append(Move(write.request, sources, targets))
    if s.can("offload"):
        copy = s.offload(write)
        s.overwrite()
        s.reload(copy, s.elsewhere(rows, start), write)


def state_copied(s: Script) -> None:
    """A state row is copied to another, and a request is written over the first."""
    rows, _ = draw_rows(s.draw, s.space)
    write = s.write(rows)
    source = write.state or s.other_state()
    if s.geometry.state_size > 1:
        target = 1 + s.draw(s.geometry.state_size - 1)
        target += target >= source
        s.steps.append(CopyState(source, target))
    s.steps.append(Extend(write.request, ()))
    s.round_trip(write, rows)


def state_zeroed(s: Script) -> None:
    """A state row, perhaps that of a request, is zeroed."""
    rows, _ = draw_rows(s.draw, s.space)
    write = s.write(rows)
    for _ in range(2):
        s.steps.append(ZeroState(s.other_state()))
    s.round_trip(write, rows)
