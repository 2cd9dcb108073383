"""What is queued and has not finished: what a reader who came too early should have awaited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from conformance.simdevice.queues import Op
from conformance.simdevice.scheduler import SCHEDULER
from conformance.simdevice.sites import Site


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes from the first to the last of a tensor, gaps between them included."""

    start: int
    end: int

    @classmethod
    def of(cls, tensor: Tensor) -> Span:
        start = tensor.data_ptr()
        if not tensor.numel():
            return cls(start, start)
        reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
        return cls(start, start + (reach + 1) * tensor.element_size())

    def overlaps(self, other: Span) -> bool:
        return self.shared(other) > 0

    def shared(self, other: Span) -> int:
        """How many bytes are in both."""
        return max(0, min(self.end, other.end) - max(self.start, other.start))


@dataclass(frozen=True, slots=True)
class Pending:
    """An operation that has not finished: its name, where it was queued, what it touches.

    `serial` grows from each operation that is queued to the next. `stream` is None for a host
    task. `writes` and `reads` are spans of host or device bytes.
    """

    serial: int

    name: str
    stream: int | None
    site: Site
    writes: tuple[Span, ...]
    reads: tuple[Span, ...]

    def will_write(self, tensor: Tensor) -> bool:
        return _any_overlap(self.writes, Span.of(tensor))

    def will_read(self, tensor: Tensor) -> bool:
        return _any_overlap(self.reads, Span.of(tensor))

    @property
    def remedy(self) -> str:
        """What to do before touching what it writes or reads, in words."""
        if self.stream is None:
            return f"wait for the handle of the host task {self.name}"
        return f"synchronize stream {self.stream} or wait for an event recorded on it afterwards"

    def __str__(self) -> str:
        where = "as a host task" if self.stream is None else f"on stream {self.stream}"
        return f"`{self.name}` queued at {self.site} {where}"


def pending(tensor: Tensor | None = None) -> list[Pending]:
    """The operations that are queued and not finished, oldest first.

    With a tensor of host or device: those that will write to its bytes or have yet to read
    them. Waits of streams for one another are not listed. Nothing runs because of the call.
    """
    found = [described(op) for op in SCHEDULER.unfinished()]
    if tensor is None:
        return found
    span = Span.of(tensor)
    return [each for each in found if _any_overlap((*each.writes, *each.reads), span)]


def described(op: Op) -> Pending:
    """What is told of an operation."""
    return Pending(
        op.serial,
        op.name,
        op.stream if op.stream >= 0 else None,
        op.site,
        tuple(map(Span.of, op.writes)),
        tuple(map(Span.of, op.reads)),
    )


def _any_overlap(spans: Iterable[Span], span: Span) -> bool:
    return any(each.overlaps(span) for each in spans)
