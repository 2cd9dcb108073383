"""The second door to the device's memory: its bytes, and operations of one's own in a queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from conformance.simdevice.memory import MEMORY
from conformance.simdevice.scheduler import SCHEDULER


def host_view(tensor: Tensor) -> Tensor:
    """The bytes of a device tensor as a CPU tensor of the same shape that shares them. What
    it shows is what has finished; nothing runs because of the call."""
    return MEMORY.cpu_view(tensor)


def enqueue(
    name: str,
    run: Callable[[], object],
    writes: Sequence[Tensor] = (),
    reads: Sequence[Tensor] = (),
) -> None:
    """Queue `run` on the current stream as one operation that writes `writes` and reads
    `reads`, host views."""
    SCHEDULER.enqueue(name, run, tuple(writes), tuple(reads))


def finish_tasks() -> None:
    """Wait until every host task, and then every stream, has finished."""
    SCHEDULER.finish_tasks()


def serial() -> int:
    """A number above those of all operations queued so far, and below those of later ones."""
    return SCHEDULER.next_serial()
