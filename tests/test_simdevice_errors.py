"""What fails on the device fails late, sticks, and tells where it was queued."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch
from simdevice_device import sim_device  # noqa: F401  (each test has the device)

from conformance import simdevice as sim


def bad_index() -> int:
    """Queue a write out of bounds on a new stream; the line that does."""
    with sim.stream(sim.Stream()):
        rows, ids = torch.zeros(3, device="sim"), torch.tensor([7], device="sim")
        rows[ids] = 1.0
        return inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]


def test_device_assert_names_operation_site_and_stream() -> None:
    line = bad_index()
    with pytest.raises(sim.DeviceAssert) as failure:
        sim.synchronize()
    message = str(failure.value)
    assert "index_put_" in message
    assert f"test_simdevice_errors.py:{line} on stream 1" in message
    assert "index 7 is out of bounds" in message


def test_device_assert_sticks_until_reset() -> None:
    rows, event = torch.ones(2, device="sim"), sim.Event()
    event.record()
    sim.synchronize()
    bad_index()
    with pytest.raises(sim.DeviceAssert):
        sim.synchronize()
    calls: tuple[Callable[[], object], ...] = (
        sim.synchronize,
        sim.Stream().query,
        lambda: rows + 1,
        lambda: rows.tolist(),
        lambda: rows.to("cpu", non_blocking=True),
        lambda: torch.zeros(1, device="sim"),
        lambda: torch.ones(1).to("sim"),
        event.synchronize,
        lambda: sim.defer(lambda: None, "task"),
    )
    for call in calls:
        with pytest.raises(sim.DeviceAssert, match=r"reset\(\) it.*index_put_"):
            call()
    sim.reset()
    assert (rows + 1).tolist() == [2, 2]


@pytest.mark.parametrize("ids", [[3], [-4], [0, 99]])
def test_reading_out_of_bounds(ids: list[int]) -> None:
    rows, chosen = torch.zeros(3, device="sim"), torch.tensor(ids, device="sim")
    got = rows[chosen]
    with pytest.raises(sim.DeviceAssert, match="index on|in index, "):
        got.tolist()


def test_gather_out_of_bounds() -> None:
    rows = torch.zeros(3, device="sim")
    torch.gather(rows, 0, torch.tensor([5], device="sim"))
    with pytest.raises(sim.DeviceAssert, match="gather"):
        sim.synchronize()


def test_index_that_was_not_yet_written_is_out_of_bounds() -> None:
    rows, side = torch.zeros(3, device="sim"), sim.Stream()
    ids = torch.zeros(2, dtype=torch.int64).pin_memory().to("sim", non_blocking=True)
    with sim.stream(side):
        got = rows[ids]
    with pytest.raises(sim.DeviceAssert), sim.stream(side):
        got.tolist()


def test_unfit_arguments_are_refused_at_the_call() -> None:
    rows, ids = torch.zeros(3, 2, device="sim"), torch.tensor([0, 1], device="sim")
    calls: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: rows.__setitem__(ids, torch.ones(3, 2, device="sim")), "shape mismatch"),
        (lambda: rows.index_put_((ids,), torch.ones(2, device="sim").int()), "dtypes match"),
        (lambda: rows + torch.ones(5, device="sim"), "must match|size|length"),
        (lambda: rows.add_(torch.ones(4, 3, 2, device="sim")), "shape|size|match|length"),
        (lambda: rows[ids, ids, ids], "too many indices"),
        (lambda: rows[torch.ones(2, dtype=torch.bool, device="sim")], "shape of the mask"),
        (lambda: torch.cat([rows, torch.zeros(1, 5, device="sim")]), "[Ss]izes"),
        (lambda: torch.arange(5, 0, device="sim"), "bound"),
    )
    for call, message in calls:
        with pytest.raises((RuntimeError, IndexError), match=message) as failure:
            call()
        assert not isinstance(failure.value, sim.SimError)
    sim.synchronize()


def test_devices_do_not_mix() -> None:
    here, host = torch.ones(2, device="sim"), torch.ones(2)
    ids, host_ids = torch.tensor([0], device="sim"), torch.tensor([0])
    calls: tuple[Callable[[], object], ...] = (
        lambda: here + host,
        lambda: host + here,
        lambda: host.add_(here),
        lambda: torch.cat([here, host]),
        lambda: torch.stack([host, here]),
        lambda: torch.equal(here, host),
        lambda: torch.where(here > 0, here, host),
        lambda: here.index_put_((host_ids,), torch.ones(1)),
        lambda: host.index_put_((host_ids,), torch.ones(1, device="sim")),
        lambda: host[ids],
        lambda: host.index_select(0, ids),
        lambda: here.index_select(0, host_ids),
        lambda: torch.gather(here, 0, host_ids),
    )
    for call in calls:
        with pytest.raises((RuntimeError, IndexError), match="device|indices should be"):
            call()
    sim.synchronize()


def test_host_scalars_and_host_indices_are_taken_by_value() -> None:
    rows, ids, scalar = torch.arange(3.0, device="sim"), torch.tensor([1]), torch.tensor(2.0)
    got, doubled = rows[ids], rows * scalar
    rows[ids] = scalar
    ids.fill_(0)
    scalar.fill_(7)
    assert got.tolist() == [1]
    assert doubled.tolist() == [0, 2, 4]
    assert rows.tolist() == [0, 2, 2]
