"""What has not finished, where it was queued, and what to wait for."""

from __future__ import annotations

import inspect
from typing import cast

import torch
from simdevice_device import sim_device  # noqa: F401  (each test has the device)
from simdevice_programs import pinned

from conformance import simdevice as sim


def here() -> int:
    """The line that calls this."""
    frame = inspect.currentframe()
    assert frame is not None
    return cast(int, frame.f_back.f_lineno)  # type: ignore[union-attr]


def test_nothing_is_pending_at_first() -> None:
    assert sim.pending() == []
    assert sim.pending(torch.zeros(3)) == []


def test_pending_copy_names_operation_stream_and_call_site() -> None:
    rows, side = torch.ones(2, device="sim"), sim.Stream()
    side.wait_stream(sim.current_stream())
    with sim.stream(side):
        host, line = rows.to("cpu", non_blocking=True), here()
    [copy] = sim.pending(host)
    assert (copy.name, copy.stream) == ("copy to host", 1)
    assert (copy.site.path, copy.site.line) == (__file__, line)
    assert str(copy) == f"`copy to host` queued at {copy.site} on stream 1"
    assert copy.remedy == "synchronize stream 1 or wait for an event recorded on it afterwards"
    assert copy.will_write(host)
    assert not copy.will_read(host)
    assert copy.will_read(rows)
    side.synchronize()
    assert sim.pending(host) == []


def test_pending_lists_writers_and_readers_of_a_tensor_oldest_first() -> None:
    host, rows, other = pinned(1.0, 2.0), torch.zeros(4, device="sim"), torch.ones(2, device="sim")
    rows[:2].copy_(host, non_blocking=True)
    with sim.stream(sim.Stream()):
        rows[2:].copy_(other)
    read = rows + 1
    assert [each.name for each in sim.pending()] == [
        "zero_",
        "fill_",
        "copy to device",
        "copy_",
        "add",
    ]
    assert [each.name for each in sim.pending(rows[:2])] == ["zero_", "copy to device", "add"]
    assert [each.name for each in sim.pending(host)] == ["copy to device"]
    assert [each.name for each in sim.pending(host[1:])] == ["copy to device"]
    assert [each.name for each in sim.pending(read)] == ["add"]
    assert sim.pending(rows[:0]) == []


def test_pending_runs_nothing() -> None:
    host = torch.ones(2, device="sim").to("cpu", non_blocking=True)
    sim.pending()
    sim.pending(host)
    assert host.isnan().all()


def test_pending_host_task() -> None:
    disk = torch.zeros(2)
    sim.defer(lambda: disk.fill_(1), "store", writes=[disk])
    line = here() - 1
    [task] = sim.pending(disk)
    assert (task.name, task.stream, task.site.line) == ("store", None, line)
    assert str(task) == f"`store` queued at {task.site} as a host task"
    assert task.remedy == "wait for the handle of the host task store"


def test_call_site_outside_the_current_folder_is_a_whole_path() -> None:
    torch.ones(1, device="sim")
    site = sim.pending()[0].site
    assert str(site) in (f"{site.path}:{site.line}", f"tests/{__name__}.py:{site.line}")
    assert str(type(site)("/somewhere/else.py", 3)) == "/somewhere/else.py:3"
