"""Host tasks: what another host thread does, run as late as the schedule says.

A completion callback, or a copy from one host buffer to another by an I/O thread, is such a
task. It runs in the thread that waits for it, or that gives it the chance, never by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from conformance.simdevice.queues import Mark
from conformance.simdevice.scheduler import DEFAULT_STREAM, SCHEDULER
from conformance.simdevice.streams import Event


class Handle:
    """A deferred task, and what became of it."""

    def __init__(self, name: str, task: Callable[[], Any]) -> None:
        self.name = name
        self.mark: Mark | None = None
        self._task = task
        self._result: Any = None
        self._error: Exception | None = None

    def query(self) -> bool:
        """Whether it has finished. Each call lets one step of it happen, so polling ends."""
        return self.mark is None or SCHEDULER.poll(self.mark)

    def wait(self) -> Any:
        """Run it, unless it has run; what it returns or raises."""
        if self.mark is not None:
            SCHEDULER.finish(self.mark)
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self) -> None:
        """The task has the current stream and the gradient mode of a new thread."""
        was = SCHEDULER.in_task, SCHEDULER.current()
        SCHEDULER.in_task = True
        SCHEDULER.set_current(DEFAULT_STREAM)
        try:
            with torch.inference_mode(False), torch.enable_grad():
                self._result = self._task()
        except Exception as error:
            self._error = error
        finally:
            SCHEDULER.in_task = was[0]
            SCHEDULER.set_current(was[1])


After = Event | torch.Stream | Handle
"""What a task may wait for: an event, all that a stream has queued, another task."""


def defer(
    task: Callable[[], Any],
    name: str,
    *,
    after: After | Iterable[After] = (),
    writes: Iterable[Tensor] = (),
    reads: Iterable[Tensor] = (),
) -> Handle:
    """Queue `task` as a host thread would do it, once all of `after` has finished.

    It runs when its handle is waited for, or when the schedule lets it; a device-wide
    `synchronize` does not wait for it. `writes` and `reads` are host tensors that it touches,
    for `pending`. The task must not wait for another thread.
    """
    wanted = (after,) if isinstance(after, After) else after
    marks = [mark for each in wanted if (mark := _mark_of(each)) is not None]
    handle = Handle(name, task)
    handle.mark = SCHEDULER.enqueue_task(name, handle._run, marks, tuple(writes), tuple(reads))
    return handle


def _mark_of(wanted: After) -> Mark | None:
    if isinstance(wanted, torch.Stream):
        return SCHEDULER.mark(wanted.stream_id)
    return wanted.mark
