"""Backups and loads that are under way, and which rows they use meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conformance.programs import Which
from conformance.step_text import Rows


@dataclass(slots=True, eq=False)
class Flight:
    """A backup or a load of a request, begun at step `step`.

    `handle` is what the tier returned, `queued` are the serials of the operations that its
    call queued. It is done once the host has waited for it, and seen once the current stream
    has, in every layer; `is_stale` once somebody has used its rows after it. `source` is the
    backup that a load brings back, `late` what of a copy seemed to be left when it was called
    done, in words: bytes have to confirm it.
    """

    way: Which
    request: str
    handle: Any
    rows: Rows
    state: int | None
    page_size: int
    step: int
    queued: range
    is_done: bool = False
    is_seen: bool = False
    is_stale: bool = False
    source: Flight | None = None
    late: str = ""

    def __str__(self) -> str:
        return f"{self.way} of {self.request}"

    def uses(self, rows: Rows, state: int | None) -> bool:
        """Whether it copies a page of these rows, or this state."""
        mine, other = ({row // self.page_size for row in each} for each in (self.rows, rows))
        return bool(mine & other) or (state is not None and state == self.state)


@dataclass(slots=True)
class Flights:
    """Those of one run, in the order in which they were begun."""

    begun: list[Flight]

    def unfinished(self) -> list[Flight]:
        return [flight for flight in self.begun if not flight.is_done]

    def of(self, request: str) -> list[Flight]:
        """Those of a request that the host has not waited for."""
        return [flight for flight in self.unfinished() if flight.request == request]

    def unseen(self, rows: Rows, state: int | None) -> list[Flight]:
        """Those with which a caller must not use these rows: backups that may still read
        them, and loads that the current stream has not waited for."""
        return [f for f in self.unfinished() if not f.is_seen and f.uses(rows, state)]

    def overwritten(self, rows: Rows, state: int | None) -> None:
        """Somebody else's bytes are on their way to these rows."""
        for flight in self.begun:
            if flight.uses(rows, state):
                flight.is_stale = True
