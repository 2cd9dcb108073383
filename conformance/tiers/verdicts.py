"""What is found when the host goes on, and at the end: late copies, and rows that are wrong.

The bytes of a queued operation are known roughly, and which call it belongs to is a guess. So
what seems late is a suspicion, told only where bytes are wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from conformance.programs import Which
from conformance.tiers.flights import Flight
from conformance.tiers.reads import Look
from conformance.timing import told_late
from conformance.troubles import Kind, Trouble

if TYPE_CHECKING:
    from conformance.runner import Run

_BYTES: tuple[Kind, ...] = ("payload", "companion", "state")


def complete(which: Which) -> str:
    """The clause that a backup, or a load, breaks when it is called done too early."""
    return f"{which}_is_complete_when_awaited"


def judge_done(run: Run, flight: Flight, when: str, step: int) -> None:
    """The host was told that a copy is done: the rows of a load must be there."""
    flight.is_done = True
    if late := _left(run, flight):
        flight.late = f"{late} when {when}"
    if flight.way == "load" and not flight.is_stale:
        _judge_rows(run, flight, when, step)


def compare(run: Run, load: Flight, step: int) -> None:
    """The rows of a load, as they are now."""
    model, cells = run.model, run.model.cells(load.rows, load.state)
    while (found := model.difference_within(cells)) is not None:
        role, what = model.actual[found.buffer].role, model.describe(found)
        _tell(run, load, Trouble(step, role, what))
        model.adopt(found.buffer)


def judge_looks(run: Run, looks: Iterable[Look]) -> None:
    """What the stream has read, now that it has finished."""
    for each in looks:
        if early := each.too_early(run.model):
            clause = "layer_is_complete_when_awaited"
            run.on_trouble(Trouble(each.step, "clause", early, clause))
        elif (wrong := each.difference()) is not None:
            role, what = run.model.actual[each.number].role, run.model.told(*wrong)
            _tell(run, each.brought, Trouble(each.step, role, f"the stream read it: {what}"))


def _tell(run: Run, load: Flight | None, trouble: Trouble) -> None:
    """Wrong bytes of a load: because it was called done too early, or its backup was?"""
    for flight in (load, load and load.source):
        if flight and flight.late and trouble.kind in _BYTES:
            what = f"{flight.late}; {trouble.what}"
            trouble = Trouble(trouble.step, "clause", what, complete(flight.way))
    run.on_trouble(trouble)


def _left(run: Run, flight: Flight) -> str:
    """What a backup seems to have yet to read, or a load to write, in words."""
    late = run.timing.unfinished(flight.queued)
    reads = flight.way == "backup"
    for buffer in run.model.actual if late else ():
        for layer, rows in enumerate(buffer.rows):
            for op in late:
                if (op.will_read if reads else op.will_write)(rows):
                    place = f"{buffer.name}, layer {buffer.first_layer + layer}"
                    done = "read" if reads else "written"
                    return f"{place}, is not {done} yet: {told_late(op)}"
    return ""


def _judge_rows(run: Run, load: Flight, when: str, step: int) -> None:
    """Rows that are wrong now and right later were not there yet: the device brings them, or a
    host thread, or what that queues."""
    model, cells = run.model, run.model.cells(load.rows, load.state)
    found = model.difference_within(cells)
    if found is None:
        return
    what = model.describe(found)
    run.timing.settle_all()
    if model.difference_within(cells) is None:
        late = load.late or f"it is right once every stream and host task has finished, when {when}"
        run.on_trouble(Trouble(step, "clause", f"{late}; {what}", complete("load")))
    else:
        compare(run, load, step)
