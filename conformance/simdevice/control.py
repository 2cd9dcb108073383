"""Begins anew, under a schedule."""

from __future__ import annotations

from collections.abc import Callable

from conformance.simdevice.copies import RULES
from conformance.simdevice.memory import MEMORY
from conformance.simdevice.schedule import Schedule, by_chooser, parse
from conformance.simdevice.scheduler import SCHEDULER


def reset(
    schedule: str = "lazy", *, pageable: str = "cuda", limit_bytes: int | None = None
) -> None:
    """Forget queues, streams, errors and counters; what is queued never runs.

    `schedule` is "lazy", "lifo", "eager", "random:SEED" or "chosen:3,0,1". With
    `pageable="late"`, pageable host memory is read and written as late as pinned memory.
    `limit_bytes` is what the device has. Tensors of before stay usable and are not counted.
    `ValueError` for other texts.
    """
    _begin(parse(schedule), pageable, limit_bytes)


def choosing(
    choose: Callable[[int], int], *, pageable: str = "cuda", limit_bytes: int | None = None
) -> None:
    """As `reset`, with a schedule that `choose` makes: given a count, an index below it.

    0 always means that nothing runs which need not, so it is the choice to shrink towards:
    with Hypothesis, `lambda count: data.draw(st.integers(0, count - 1))`.
    """
    _begin(by_chooser(choose), pageable, limit_bytes)


def schedule_text() -> str:
    """What `reset` takes to run the same schedule again, one line."""
    return SCHEDULER.schedule.replay_text()


def _begin(schedule: Schedule, pageable: str, limit_bytes: int | None) -> None:
    with SCHEDULER.lock:
        RULES.reset(pageable)
        SCHEDULER.reset(schedule)
        MEMORY.reset(limit_bytes)
