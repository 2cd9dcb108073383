"""What is in flight on a simulated device, and rows that are seen past its queues.

Of other devices nothing is known.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from conformance.buffers import Buffer, Inventory
from conformance.copies import Problem
from conformance.devices import is_simulated
from conformance.walk import tensors_in

if TYPE_CHECKING:
    from conformance.simdevice import Pending

SUITE = "written by the suite"
READ = "read by the suite"


@cache
def prepare() -> None:
    """Make "sim" a device of this process, and send `torch.cuda` there. Once, and for good.

    Raises `SimUnavailable`.
    """
    from conformance import simdevice

    simdevice.enable()
    shims = ExitStack()
    shims.enter_context(simdevice.shims())
    atexit.register(shims.close)


class Timing(Protocol):
    """What a run knows of when its device has finished."""

    def inventory(self, inventory: Inventory, /) -> Inventory:
        """The buffers as the suite is to read and write them."""

    def look(self, result: Any, made: Any, /) -> list[Problem]:
        """What is not finished when a verb of `made` returns `result`. Asked before anything
        else."""

    def settle(self) -> None:
        """Wait until everything queued has finished."""

    def settle_stream(self) -> None:
        """Wait until everything queued on the current stream has finished."""

    def settle_all(self) -> None:
        """As `settle`, and until every host task has finished."""

    def ids_on(self, device: str, /) -> str:
        """Where ids are given to a verb, unless their form says so."""

    def serial(self) -> int:
        """A number above those of all operations queued so far, below those of later ones."""

    def unfinished(self, queued: range, /) -> list[Pending]:
        """Operations with these serials that have not finished."""

    def read(self, look: Callable[[], None], rows: Tensor, /) -> None:
        """Look at `rows` when the current stream comes to it."""


class Unknown:
    """A device of which nothing is known: as if all had finished when a call returns."""

    def inventory(self, inventory: Inventory, /) -> Inventory:
        return inventory

    def look(self, _result: Any, _made: Any, /) -> list[Problem]:
        return []

    def settle(self) -> None:
        pass

    def settle_stream(self) -> None:
        pass

    def settle_all(self) -> None:
        pass

    def ids_on(self, device: str, /) -> str:
        return device

    def serial(self) -> int:
        return 0

    def unfinished(self, _queued: range, /) -> list[Pending]:
        return []

    def read(self, look: Callable[[], None], _rows: Tensor, /) -> None:
        look()


class Simulated:
    """The simulated device under one schedule, from a new start."""

    def __init__(self, schedule: str) -> None:
        from conformance import simdevice

        simdevice.reset(schedule or "lazy")
        self._device = simdevice
        # Whoever looks at ids on the device waits for its stream, which hides what is late.
        self._are_ids_on_host = schedule not in ("", "lazy")
        self._buffers: tuple[Buffer, ...] = ()

    def inventory(self, inventory: Inventory, /) -> Inventory:
        """Rows as CPU tensors over the device's bytes: read at once, written by one queued
        operation, so that what the suite does is in order with what the pool does."""
        self._buffers = tuple(self._past_the_queues(buffer) for buffer in inventory.buffers)
        return replace(inventory, buffers=self._buffers)

    def look(self, result: Any, made: Any, /) -> list[Problem]:
        pending = [op for op in self._device.pending() if op.name != SUITE]
        if not pending:
            return []
        if result is not None:
            return list(self._unread(result, made, pending))
        return list(self._unseen(pending))

    def settle(self) -> None:
        self._device.synchronize()

    def settle_all(self) -> None:
        from conformance.simdevice.door import finish_tasks

        finish_tasks()

    def settle_stream(self) -> None:
        self._device.current_stream().synchronize()

    def ids_on(self, device: str, /) -> str:
        return "cpu" if self._are_ids_on_host else device

    def serial(self) -> int:
        from conformance.simdevice.door import serial

        return serial()

    def unfinished(self, queued: range, /) -> list[Pending]:
        return [op for op in self._device.pending() if op.serial in queued]

    def read(self, look: Callable[[], None], rows: Tensor, /) -> None:
        from conformance.simdevice.door import enqueue

        enqueue(READ, look, reads=[rows])

    def _past_the_queues(self, buffer: Buffer) -> Buffer:
        from conformance.simdevice.door import host_view

        rows = tuple(host_view(rows) for rows in buffer.rows)
        columns = None if buffer.columns is None else buffer.columns.cpu()
        locate = buffer.locate and _on(buffer.rows[0].device, buffer.locate)
        return replace(buffer, rows=rows, columns=columns, locate=locate, queue=self._write)

    def _write(self, run: Callable[[], object], rows: Sequence[Tensor]) -> None:
        from conformance.simdevice.door import enqueue

        enqueue(SUITE, run, rows)

    def _unread(self, copy: Any, made: Any, pending: Sequence[Pending]) -> Iterator[Problem]:
        """Host tensors of a copy that an operation has yet to write."""
        for path, tensor in tensors_in(copy, skip=made):
            if op := _writer(tensor, pending):
                whose = self._whose(tensor)
                yield (
                    "copy_is_complete_on_return",
                    f"{path or 'the copy'}{whose} is not there yet: {told_late(op)} when offload "
                    "returned",
                )
                return

    def _unseen(self, pending: Sequence[Pending]) -> Iterator[Problem]:
        """Rows that an operation has yet to write."""
        for buffer in self._buffers:
            for layer, rows in enumerate(buffer.rows):
                if op := _writer(rows, pending):
                    yield (
                        "reload_is_complete_on_return",
                        f"{buffer.name}, layer {buffer.first_layer + layer}, is not written "
                        f"yet: {told_late(op)} when reload returned",
                    )
                    return

    def _whose(self, tensor: Tensor) -> str:
        """Which buffer the bytes of a host tensor come from, once they are there."""
        self.settle()
        content = tensor.detach().contiguous().view(-1).view(torch.uint8)
        for buffer in self._buffers:
            for layer, rows in enumerate(buffer.rows):
                width = rows.shape[1]
                if len(content) >= width and bool((rows == content[:width]).all(-1).any()):
                    return f" ({buffer.name}, layer {buffer.first_layer + layer})"
        return ""


def timing_of(device: str, schedule: str) -> Timing:
    """What a new run knows of its device."""
    return Simulated(schedule) if is_simulated(device) else Unknown()


def _on(device: torch.device, locate: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda ids: locate(ids.to(device)).cpu()


def _writer(tensor: Tensor, pending: Sequence[Pending]) -> Pending | None:
    """The first operation that is going to write into the tensor."""
    return next((op for op in pending if op.will_write(tensor)), None)


def told_late(op: Pending) -> str:
    return f"{op} had not finished (to wait for it: {op.remedy})"
