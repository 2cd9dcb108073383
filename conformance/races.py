"""Why bytes depend on time: two operations that nothing puts in order, found by putting them
in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from conformance.timing import READ, SUITE
from conformance.troubles import Trouble

if TYPE_CHECKING:
    from conformance.simdevice import Pending
    from conformance.simdevice.hazards import Hazard

MOST = 40
"""How many pairs are tried, those that share the fewest bytes first: they are the surest."""


def race_in(run: Callable[[], Trouble | None]) -> str:
    """What has to wait for what, so that the first trouble of `run` goes away; "" where no one
    pair of operations on the simulated device is to blame. Runs it once for each pair tried."""
    from conformance.simdevice.hazards import watching

    with watching() as watcher:
        trouble = run()
    if trouble is None:
        return ""
    hazards = filter(_is_of_the_engine, watcher.hazards())
    for hazard in sorted(hazards, key=lambda hazard: hazard.shared)[:MOST]:
        with watching(hazard):
            found = run()
        if found is None or _place(found) != _place(trouble):
            return _told(hazard.earlier.op, hazard.later.op)
    return ""


def _is_of_the_engine(hazard: Hazard) -> bool:
    """Whether it is not the caller who should wait."""
    return hazard.later.op.name not in (SUITE, READ)


def _place(trouble: Trouble) -> tuple[str, str]:
    """What was looked at, whatever it held."""
    return trouble.clause, trouble.what.partition(": holds")[0]


def _told(earlier: Pending, later: Pending) -> str:
    if later.name == "free":
        kept = f"keep it until then, or record_stream({_stream(earlier)})"
        return f"memory that {_name(earlier)} uses is freed before that has run: {kept}"
    wait = f"make {_stream(later)} wait for an event recorded on {_stream(earlier)} afterwards"
    if earlier.stream is None:
        wait = f"wait for the handle of {_name(earlier)} before it is queued"
    return f"{_name(later)} does not wait for {_name(earlier)}: {wait}"


def _name(op: Pending) -> str:
    if op.name == SUITE:
        return f"what the caller wrote on {_stream(op)}"
    return f"what the caller reads on {_stream(op)}" if op.name == READ else str(op)


def _stream(op: Pending) -> str:
    return "the host task" if op.stream is None else f"stream {op.stream}"
