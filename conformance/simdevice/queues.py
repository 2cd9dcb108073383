"""Queued operations: what a stream, or a deferred host task, has still to do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from conformance.simdevice.sites import Site


class Mark(NamedTuple):
    """A point in a queue: it is reached once `position` operations of `stream` have finished."""

    epoch: int
    stream: int
    position: int


@dataclass(slots=True, eq=False)
class Op:
    """One operation. `writes` and `reads` are the CPU views of the tensors that it uses.

    With `after`, it does nothing but wait until that mark is reached.
    """

    serial: int
    name: str
    stream: int
    site: Site
    run: Callable[[], object] | None
    writes: tuple[Any, ...] = ()
    reads: tuple[Any, ...] = ()
    after: Mark | None = None


class Follower(Protocol):
    """Is told of what is queued and of what the host waits for."""

    def begin(self) -> None:
        """A new epoch: nothing is queued."""

    def before_next(self) -> Mark | None:
        """What the next operation is to wait for."""

    def queued(self, op: Op, position: int) -> None:
        """`op` is now number `position` of its queue."""

    def host_waited(self, mark: Mark) -> None:
        """Whatever the host does next comes after `mark`."""


@dataclass(slots=True, eq=False)
class Queue:
    """Operations that finish in the order in which they were queued.

    `stream` is the id of a stream, or below 0 for a host task. `done` have finished, `tail`
    were ever queued.
    """

    stream: int
    ops: deque[Op] = field(default_factory=deque)
    tail: int = 0
    done: int = 0
