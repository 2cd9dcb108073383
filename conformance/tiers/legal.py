"""What a program on a host tier may ask for. `LookupError` for one that was typed wrong."""

from __future__ import annotations

from conformance.geometry import Geometry
from conformance.programs import Step
from conformance.step_text import Rows
from conformance.tiers.flights import Flights


def check_place(
    step: Step, rows: Rows, state: int | None, geometry: Geometry, *, has_state: bool
) -> None:
    """Refuse rows that a host tier cannot be given: whole pages, each once, none reserved."""
    page = geometry.page_size
    pages = [rows[at : at + page] for at in range(0, len(rows), page)]
    firsts = [run[0] for run in pages]
    is_run = all(run == tuple(range(run[0], run[0] + page)) for run in pages)
    if not rows or not is_run or any(first % page for first in firsts):
        raise _wrong(step, f"a host tier copies whole pages of {page} rows")
    for first in firsts:
        if not page <= first < geometry.token_rows:
            raise _wrong(step, f"the pages begin at {page}..{geometry.token_rows - page}")
        if firsts.count(first) > 1:
            raise _wrong(step, f"the page at {first} is there twice")
    check_state(step, state, geometry, has_state=has_state)


def check_state(step: Step, state: int | None, geometry: Geometry, *, has_state: bool) -> None:
    """Refuse a state that the pool has not, or that its tier does not carry."""
    if state is not None and not has_state:
        raise _wrong(step, "this host tier carries no state")
    if state is not None and not 1 <= state < geometry.state_rows:
        raise _wrong(step, f"the states are 1..{geometry.state_rows - 1}")


def check_free(step: Step, flights: Flights, rows: Rows, state: int | None, way: str = "") -> None:
    """Refuse rows of a copy in flight, which a caller must not use before it has waited."""
    for flight in flights.unseen(rows, state):
        if flight.way == (way or flight.way):
            raise _wrong(
                step, f"it uses rows of the {flight}, which is in flight; `await {flight}` first"
            )


def check_idle(step: Step, flights: Flights) -> None:
    """Refuse what needs that nothing is in flight."""
    for flight in flights.unfinished():
        raise _wrong(step, f"the {flight} is in flight; `await {flight}` first")


def _wrong(step: Step, why: str) -> LookupError:
    return LookupError(f"program: {str(step)!r}: {why}")
