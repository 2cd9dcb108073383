"""Pairs of operations that touch the same bytes, and that nothing puts in order.

Every queue has a clock: how far each other queue is known to have come before its next
operation runs (a vector clock; Mattern 1989). Two operations of which neither is in the
other's past may run in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from conformance.simdevice.diagnosis import Pending, described
from conformance.simdevice.queues import Mark, Op
from conformance.simdevice.scheduler import SCHEDULER

Clock = dict[int, int]
"""By queue: how many of its operations have finished."""


@dataclass(frozen=True, slots=True)
class Event:
    """An operation that was queued: the how-manieth, where in its queue, what was before."""

    number: int
    op: Pending
    queue: int
    position: int
    past: Clock

    def is_after(self, other: Event) -> bool:
        return self.past.get(other.queue, 0) >= other.position


@dataclass(frozen=True, slots=True)
class Hazard:
    """`later` was queued after `earlier`, and may run before it. Both use `shared` bytes."""

    earlier: Event
    later: Event
    shared: int

    def __str__(self) -> str:
        first, then = self.earlier.op, self.later.op
        return f"{then} may run before {first}, whose bytes it touches: nothing makes it wait"


@dataclass(slots=True)
class Watcher:
    """Follows what is queued and who waits for whom. With `order`, that hazard's later
    operation waits for the earlier one."""

    order: Hazard | None = None
    events: list[Event] = field(default_factory=list)
    _clocks: dict[int, Clock] = field(default_factory=dict)
    _past_of: dict[tuple[int, int], Clock] = field(default_factory=dict)
    _host: Clock = field(default_factory=dict)

    def begin(self) -> None:
        """A new epoch: nothing is queued."""
        self.events.clear()
        self._clocks, self._past_of, self._host = {}, {}, {}

    def before_next(self) -> Mark | None:
        """What the next operation, if it is the later one of `order`, has to wait for."""
        if self.order is None or self.order.later.number != len(self.events):
            return None
        earlier = self.order.earlier
        return Mark(SCHEDULER.epoch, earlier.queue, earlier.position)

    def queued(self, op: Op, position: int) -> None:
        """`op` is now number `position` of its queue."""
        clock = self._clocks.setdefault(op.stream, {})
        _join(clock, self._host)
        if op.after is not None:
            _join(clock, self._clock_at(op.after))
        if op.run is not None:
            event = Event(len(self.events), described(op), op.stream, position, dict(clock))
            self.events.append(event)
        clock[op.stream] = position
        self._past_of[op.stream, position] = dict(clock)

    def host_waited(self, mark: Mark) -> None:
        """Whatever the host does next comes after `mark`."""
        _join(self._host, self._clock_at(mark))

    def hazards(self) -> Iterator[Hazard]:
        """Those of one epoch, in the order of the later operations: for each, and for each
        queue, that with the last operation which should come first."""
        for later in self.events:
            last: dict[int, Hazard] = {}
            for earlier in self.events[: later.number]:
                if earlier.queue == later.queue or later.is_after(earlier):
                    continue
                if shared := _shared(earlier.op, later.op):
                    last[earlier.queue] = Hazard(earlier, later, shared)
            yield from last.values()

    def _clock_at(self, mark: Mark) -> Clock:
        if mark.epoch != SCHEDULER.epoch:
            return {}
        return self._past_of.get((mark.stream, mark.position), {})


@contextmanager
def watching(order: Hazard | None = None) -> Iterator[Watcher]:
    """Follow what is queued inside the `with`, from the next `reset` on."""
    watcher = Watcher(order)
    SCHEDULER.watcher = watcher
    try:
        yield watcher
    finally:
        SCHEDULER.watcher = None


def _join(clock: Clock, other: Clock) -> None:
    for queue, position in other.items():
        clock[queue] = max(clock.get(queue, 0), position)


def _shared(first: Pending, then: Pending) -> int:
    """How many bytes one writes and the other touches; the spans are wider than what is used."""
    pairs = ((first.writes, (*then.reads, *then.writes)), (first.reads, then.writes))
    return sum(one.shared(other) for ones, others in pairs for one in ones for other in others)
