"""Programs on streams: legal ones, and pairs of which one half lacks a wait.

Each function of `RACES` runs right with `waits=True`; without, a CUDA device may give other
values. It returns whether the values were right.
"""

from __future__ import annotations

import torch
from torch import Tensor

from conformance import simdevice as sim


def pinned(*values: float) -> Tensor:
    return torch.tensor(values).pin_memory()


def early_host_read(waits: bool) -> bool:
    rows = torch.arange(4.0, device="sim")
    host = rows.to("cpu", non_blocking=True)
    if waits:
        sim.synchronize()
    return host.tolist() == [0, 1, 2, 3]


def read_of_unwritten(waits: bool) -> bool:
    """RAW: a side stream stores rows that the main stream has yet to write (vllm 45704)."""
    pool, host, side = torch.zeros(8, device="sim"), pinned(*[0.0] * 8), sim.Stream()
    sim.synchronize()
    pool[3] = 7.0
    if waits:
        side.wait_stream(sim.current_stream())
    with sim.stream(side):
        host[3].copy_(pool[3], non_blocking=True)
    sim.synchronize()
    return host[3].item() == 7


def write_of_unread(waits: bool) -> bool:
    """WAR: a side stream loads rows that the main stream has yet to read (vllm 47282)."""
    pool, host, side = torch.ones(8, device="sim"), pinned(*[9.0] * 8), sim.Stream()
    sim.synchronize()
    read = pool[3].clone()
    if waits:
        side.wait_stream(sim.current_stream())
    with sim.stream(side):
        pool[3].copy_(host[3], non_blocking=True)
    side.synchronize()
    return read.item() == 1


def staging_reused(waits: bool) -> bool:
    staging, rows = pinned(1.0, 1.0), torch.zeros(2, 2, device="sim")
    for row in range(2):
        staging.fill_(row + 1.0)
        rows[row].copy_(staging, non_blocking=True)
        if waits:
            sim.current_stream().synchronize()
    return rows.cpu().tolist() == [[1, 1], [2, 2]]


def not_recorded(waits: bool) -> bool:
    """A tensor is freed on its own stream while a side stream has yet to read it."""
    side, rows = sim.Stream(), torch.full((4,), 3.0, device="sim")
    side.wait_stream(sim.current_stream())
    with sim.stream(side):
        doubled = rows * 2
    if waits:
        rows.record_stream(side)
    del rows
    sim.current_stream().synchronize()
    sim.synchronize()
    return doubled.cpu().tolist() == [6] * 4


def freed_in_flight(waits: bool) -> bool:
    """The same, by a copy to the host, and joined by an event instead."""
    side, rows, host = sim.Stream(), torch.full((2,), 3.0, device="sim"), pinned(0.0, 0.0)
    sim.synchronize()
    with sim.stream(side):
        host.copy_(rows, non_blocking=True)
        done = side.record_event()
    if waits:
        sim.current_stream().wait_event(done)
    del rows
    sim.synchronize()
    return host.tolist() == [3, 3]


def wrong_event(waits: bool) -> bool:
    """The event was recorded before the copy that it is to stand for."""
    rows, host, done = torch.ones(2, device="sim"), pinned(0.0, 0.0), sim.Event()
    if not waits:
        done.record()
    host.copy_(rows, non_blocking=True)
    if waits:
        done.record()
    done.synchronize()
    return host.tolist() == [1, 1]


RACES = (
    early_host_read,
    read_of_unwritten,
    write_of_unread,
    staging_reused,
    not_recorded,
    freed_in_flight,
    wrong_event,
)


def through_one_buffer() -> None:
    """To the device and back through the same pinned memory, on one stream, no host wait."""
    host, rows = pinned(3.0, 3.0), torch.zeros(2, device="sim")
    other = torch.full((2,), 8.0, device="sim")
    rows.copy_(host, non_blocking=True)
    host.copy_(other, non_blocking=True)
    sim.synchronize()
    assert rows.tolist() == [3, 3]
    assert host.tolist() == [8, 8]


def double_buffered() -> None:
    side, staging = sim.Stream(), [pinned(0.0, 0.0), pinned(0.0, 0.0)]
    done: list[sim.Event | None] = [None, None]
    rows = torch.zeros(6, 2, device="sim")
    side.wait_stream(sim.current_stream())
    for row in range(6):
        event = done[row % 2]
        if event is not None:
            event.synchronize()
        staging[row % 2].fill_(float(row))
        with sim.stream(side):
            rows[row].copy_(staging[row % 2], non_blocking=True)
            done[row % 2] = side.record_event()
    sim.current_stream().wait_stream(side)
    assert rows[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


def freed_after_joining() -> None:
    side, rows = sim.Stream(), torch.full((4,), 2.0, device="sim")
    side.wait_stream(sim.current_stream())
    with sim.stream(side):
        tripled = rows * 3
    sim.current_stream().wait_stream(side)
    del rows
    torch.zeros(4, device="sim")
    assert tripled.tolist() == [6] * 4


def rows_apart() -> None:
    """Two streams write rows of their own to one pool."""
    side, pool = sim.Stream(), torch.zeros(4, device="sim")
    side.wait_stream(sim.current_stream())
    with sim.stream(side):
        pool[1] = 5.0
    pool[0] = 4.0
    sim.current_stream().wait_stream(side)
    assert pool.tolist() == [4, 5, 0, 0]


def pageable_blocks() -> None:
    host, rows = torch.zeros(2), torch.ones(2, device="sim")
    host.copy_(rows, non_blocking=True)
    assert host.tolist() == [1, 1]
    rows.copy_(host, non_blocking=True)
    host.fill_(5)
    assert rows.tolist() == [1, 1]


def values_wait() -> None:
    rows = torch.arange(5, device="sim")
    assert rows.sum().item() == 10
    assert rows[rows > 2].tolist() == [3, 4]


def round_trip() -> None:
    """Out, overwritten, back, on one stream: no host wait is needed."""
    rows, ids = torch.arange(6.0, device="sim"), torch.tensor([1, 4], device="sim")
    host = rows[ids].to("cpu", non_blocking=True)
    rows.zero_()
    rows[ids] = host.to("sim", non_blocking=True)
    assert rows.tolist() == [0, 1, 0, 0, 4, 0]


def event_chain() -> None:
    """Three streams, each waits for an event of the one before."""
    rows, last = torch.zeros(4, device="sim"), sim.current_stream()
    for step in range(3):
        side, done = sim.Stream(), last.record_event()
        side.wait_event(done)
        with sim.stream(side):
            rows[step + 1] = rows[step] + 1
        last = side
    last.synchronize()
    with sim.stream(last):
        assert rows.tolist() == [0, 1, 2, 3]


def host_task_copies() -> None:
    """An I/O thread takes rows from a pinned buffer once they are there."""
    rows, buffer, disk = torch.ones(2, device="sim"), pinned(0.0, 0.0), torch.zeros(2)
    buffer.copy_(rows, non_blocking=True)
    done = sim.current_stream().record_event()
    stored = sim.defer(lambda: disk.copy_(buffer), "store", after=done)
    stored.wait()
    assert disk.tolist() == [1, 1]


LEGAL = (
    through_one_buffer,
    double_buffered,
    freed_after_joining,
    rows_apart,
    pageable_blocks,
    values_wait,
    round_trip,
    event_chain,
    host_task_copies,
)
