"""Streams and events, as `torch.cuda` has them."""

# ruff: noqa: ARG001, ARG002, ARG004
# The arguments are torch's, whether they matter here or not.

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from conformance.simdevice.queues import Mark
from conformance.simdevice.scheduler import DEFAULT_STREAM, SCHEDULER

_PRIVATE_USE = 20
"""c10::DeviceType::PrivateUse1."""


class Stream(torch.Stream):
    """A queue of operations; `stream_id` is its number, 0 that of the default stream.

    It is a `torch.Stream`, so `Tensor.record_stream` takes it.
    """

    def __new__(
        cls, device: object = None, priority: int = 0, *, stream_id: int | None = None, **_: Any
    ) -> Stream:
        number = SCHEDULER.new_stream() if stream_id is None else stream_id
        return super().__new__(cls, stream_id=number, device_index=0, device_type=_PRIVATE_USE)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """All is done in `__new__`, as `torch.Stream` does."""

    @property
    def cuda_stream(self) -> int:
        """The handle that `torch.cuda.Stream` has under this name."""
        return self.stream_id

    def synchronize(self) -> None:
        SCHEDULER.finish_stream(self.stream_id)

    def query(self) -> bool:
        """Whether all is finished. Each call lets one operation finish, so polling ends."""
        return SCHEDULER.poll(SCHEDULER.mark(self.stream_id))

    def record_event(self, event: Event | None = None) -> Event:  # type: ignore[override]  # events of this device are no torch.Event
        recorded = Event() if event is None else event
        recorded.record(self)
        return recorded

    def wait_event(self, event: Event) -> None:  # type: ignore[override]  # as above
        """What is queued here from now on waits for what the event was recorded after."""
        if event.mark is not None:
            SCHEDULER.enqueue_wait(self.stream_id, event.mark)

    def wait_stream(self, stream: torch.Stream) -> None:
        """What is queued here from now on waits for what is queued on `stream` now."""
        SCHEDULER.enqueue_wait(self.stream_id, SCHEDULER.mark(stream.stream_id))

    def __enter__(self) -> Stream:
        stack = SCHEDULER.local.__dict__.setdefault("stack", [])
        stack.append(SCHEDULER.current())
        SCHEDULER.set_current(self.stream_id)
        return self

    def __exit__(self, *_: object) -> None:
        stack = SCHEDULER.local.__dict__.get("stack")
        if stack:
            SCHEDULER.set_current(stack.pop())

    def __repr__(self) -> str:
        return f"<sim stream {self.stream_id}>"


class Event:
    """A point in a stream's queue; one that was never recorded is complete."""

    def __init__(self, device: object = None, *_: Any, **__: Any) -> None:
        self.mark: Mark | None = None

    def record(self, stream: torch.Stream | None = None) -> None:
        self.mark = SCHEDULER.mark(SCHEDULER.current() if stream is None else stream.stream_id)

    def wait(self, stream: Stream | None = None) -> None:
        """`Stream.wait_event`, of the current stream if none is given."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether the point is reached. Each call lets one operation finish."""
        return self.mark is None or SCHEDULER.poll(self.mark)

    def synchronize(self) -> None:
        if self.mark is not None:
            SCHEDULER.finish(self.mark)

    def elapsed_time(self, end_event: Event) -> float:
        """Nothing takes time here."""
        return 0.0


def current_stream(device: object = None) -> Stream:
    """This thread's current stream."""
    return Stream(stream_id=SCHEDULER.current())


def default_stream(device: object = None) -> Stream:
    return Stream(stream_id=DEFAULT_STREAM)


def set_stream(stream: torch.Stream) -> None:
    """Make `stream` the current one of this thread."""
    SCHEDULER.set_current(stream.stream_id)


@contextlib.contextmanager
def stream(stream: Stream | None) -> Iterator[Stream | None]:
    """Make `stream` the current one inside the `with`; None changes nothing."""
    if stream is None:
        yield None
        return
    with stream:
        yield stream


def synchronize(device: object = None) -> None:
    """Wait until every stream has finished."""
    SCHEDULER.finish_all()
