"""Pairs of operations that nothing puts in order: which are told, and which are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from simdevice_device import sim_device  # noqa: F401  (each test has the device)

from conformance import simdevice
from conformance.races import race_in
from conformance.simdevice import Hazard, watching
from conformance.timing import READ, SUITE
from conformance.troubles import Trouble

Step = Callable[[torch.Tensor, torch.Tensor, simdevice.Stream], None]


def hazards_of(step: Step, schedule: str = "lazy") -> list[Hazard]:
    """Those of `fill_` on the default stream, then a copy to the host on a side stream, with
    `step` in between."""
    with watching() as watcher:
        copied(step, schedule)
    return list(watcher.hazards())


def copied(step: Step, schedule: str = "lazy") -> list[float]:
    simdevice.reset(schedule)
    pool, host = torch.zeros(4, device="sim"), torch.zeros(4).pin_memory()
    side = simdevice.Stream()
    simdevice.synchronize()
    pool.fill_(7)
    step(pool, host, side)
    with simdevice.stream(side):
        host.copy_(pool, non_blocking=True)
    simdevice.synchronize()
    return host.tolist()


def waits_for_stream(_pool: torch.Tensor, _host: torch.Tensor, side: simdevice.Stream) -> None:
    side.wait_stream(simdevice.current_stream())


def waits_for_event(_pool: torch.Tensor, _host: torch.Tensor, side: simdevice.Stream) -> None:
    side.wait_event(simdevice.current_stream().record_event())


def waits_by_a_third(_pool: torch.Tensor, _host: torch.Tensor, side: simdevice.Stream) -> None:
    third = simdevice.Stream()
    third.wait_stream(simdevice.current_stream())
    side.wait_event(third.record_event())


def host_waits(_pool: torch.Tensor, _host: torch.Tensor, _side: simdevice.Stream) -> None:
    simdevice.current_stream().synchronize()


def host_waits_for_all(_pool: torch.Tensor, _host: torch.Tensor, _side: simdevice.Stream) -> None:
    simdevice.synchronize()


def host_polls(_pool: torch.Tensor, _host: torch.Tensor, _side: simdevice.Stream) -> None:
    event = simdevice.current_stream().record_event()
    while not event.query():
        pass


def nobody_waits(_pool: torch.Tensor, _host: torch.Tensor, _side: simdevice.Stream) -> None:
    pass


def event_comes_too_early(pool: torch.Tensor, _host: torch.Tensor, side: simdevice.Stream) -> None:
    early = simdevice.current_stream().record_event()
    pool.add_(1)
    side.wait_event(early)


def other_stream_is_awaited(
    _pool: torch.Tensor, _host: torch.Tensor, side: simdevice.Stream
) -> None:
    side.wait_stream(simdevice.Stream())


@pytest.mark.parametrize("schedule", ["lazy", "lifo", "random:3", "chosen:1,1"])
@pytest.mark.parametrize(
    "step",
    [
        waits_for_stream,
        waits_for_event,
        waits_by_a_third,
        host_waits,
        host_waits_for_all,
        host_polls,
    ],
)
def test_operations_in_order_are_no_hazard(step: Step, schedule: str) -> None:
    assert hazards_of(step, schedule) == []


@pytest.mark.parametrize("schedule", ["lazy", "lifo", "random:3", "chosen:1,1"])
@pytest.mark.parametrize(
    ("step", "earlier"),
    [
        (nobody_waits, "fill_"),
        (other_stream_is_awaited, "fill_"),
        (event_comes_too_early, "add"),
    ],
)
def test_operations_in_no_order_are_a_hazard_whatever_the_schedule_made_of_them(
    step: Step, earlier: str, schedule: str
) -> None:
    (hazard,) = hazards_of(step, schedule)
    assert (hazard.earlier.op.name, hazard.later.op.name) == (earlier, "copy to host")
    assert (hazard.earlier.op.stream, hazard.later.op.stream, hazard.shared) == (0, 1, 16)
    assert str(hazard).startswith("`copy to host` queued at ")
    assert " may run before `" in str(hazard)


def test_pair_in_order_makes_the_failure_go_away() -> None:
    (hazard,) = hazards_of(nobody_waits)
    assert copied(nobody_waits, "lifo") == [0, 0, 0, 0]
    with watching(hazard) as watcher:
        assert copied(nobody_waits, "lifo") == [7, 7, 7, 7]
    assert list(watcher.hazards()) == []
    assert copied(nobody_waits, "lifo") == [0, 0, 0, 0]


def test_two_that_read_are_no_hazard() -> None:
    with watching() as watcher:
        simdevice.reset()
        rows = torch.zeros(4, device="sim")
        simdevice.synchronize()
        rows.clone()
        with simdevice.stream(simdevice.Stream()):
            rows.clone()
        simdevice.synchronize()
    assert not [h for h in watcher.hazards() if h.earlier.op.name == h.later.op.name == "clone"]


@pytest.mark.parametrize("records", [False, True])
def test_memory_that_is_freed_in_flight_is_a_hazard(records: bool) -> None:
    with watching() as watcher:
        simdevice.reset()
        rows = torch.zeros(4, device="sim")
        side, host = simdevice.Stream(), torch.zeros(4).pin_memory()
        side.wait_stream(simdevice.current_stream())
        with simdevice.stream(side):
            host.copy_(rows, non_blocking=True)
        if records:
            rows.record_stream(side)
        del rows
        simdevice.synchronize()
    freed = [hazard for hazard in watcher.hazards() if hazard.later.op.name == "free"]
    assert [hazard.earlier.op.name for hazard in freed] == ([] if records else ["copy to host"])


@pytest.mark.parametrize("waits", [False, True])
def test_host_task_is_ordered_by_its_handle(waits: bool) -> None:
    with watching() as watcher:
        simdevice.reset()
        host = torch.zeros(4).pin_memory()
        task = simdevice.defer(lambda: host.fill_(3), "fill", writes=[host])
        if waits:
            task.wait()
        rows = torch.zeros(4, device="sim")
        rows.copy_(host, non_blocking=True)
        simdevice.synchronize()
        task.wait()
    pairs = [(h.earlier.op.name, h.later.op.name) for h in watcher.hazards()]
    assert pairs == ([] if waits else [("fill", "copy to device")])


def test_last_operation_of_a_queue_that_should_come_first_is_told() -> None:
    def step(pool: torch.Tensor, _host: torch.Tensor, _side: simdevice.Stream) -> None:
        pool.add_(1)
        pool.mul_(2)

    (hazard,) = hazards_of(step)
    assert hazard.earlier.op.name == "mul"


def test_nothing_is_followed_outside() -> None:
    with watching() as watcher:
        pass
    copied(nobody_waits)
    assert list(watcher.hazards()) == []


# -- which one is to blame ------------------------------------------------------------------


def trouble_of(step: Step, schedule: str = "lifo") -> Trouble | None:
    found = copied(step, schedule)
    return None if found == [7] * 4 else Trouble(0, "payload", f"the host: holds {found}")


def test_race_is_told_with_what_has_to_wait() -> None:
    told = race_in(lambda: trouble_of(nobody_waits))
    assert told.startswith("`copy to host` queued at ")
    assert " on stream 1 does not wait for `fill_` queued at " in told
    assert told.endswith(": make stream 1 wait for an event recorded on stream 0 afterwards")


def test_no_race_is_told_where_nothing_fails() -> None:
    assert race_in(lambda: trouble_of(waits_for_stream)) == ""


def test_no_race_is_told_where_order_does_not_help() -> None:
    def wrong(pool: torch.Tensor, _host: torch.Tensor, side: simdevice.Stream) -> None:
        pool.fill_(8)
        side.synchronize()

    assert hazards_of(wrong)
    assert race_in(lambda: trouble_of(wrong, "lazy")) == ""


@pytest.mark.parametrize("name", [SUITE, READ])
def test_callers_own_operations_are_not_blamed_for_not_waiting(name: str) -> None:
    from conformance.simdevice.door import enqueue, host_view

    def run() -> Trouble | None:
        simdevice.reset("lifo")
        rows = torch.zeros(4, device="sim")
        side = simdevice.Stream()
        simdevice.synchronize()
        seen = []
        with simdevice.stream(side):
            rows.fill_(7)
        view = host_view(rows)
        enqueue(name, lambda: seen.append(view.tolist()), reads=[view])
        simdevice.current_stream().synchronize()
        simdevice.synchronize()
        return Trouble(0, "payload", "seen: holds 0") if seen[0][0] == 0 else None

    assert run() is not None
    assert race_in(run) == ""


def test_race_with_a_host_task_names_its_handle() -> None:
    def run() -> Trouble | None:
        simdevice.reset("lazy")
        host = torch.zeros(4).pin_memory()
        task = simdevice.defer(lambda: host.fill_(7), "fetch", writes=[host])
        rows = torch.zeros(4, device="sim")
        rows.copy_(host, non_blocking=True)
        simdevice.synchronize()
        task.wait()
        return None if rows.cpu()[0] == 7 else Trouble(0, "payload", "rows: holds 0")

    told = race_in(run)
    assert " on stream 0 does not wait for `fetch` queued at " in told
    assert "as a host task: wait for the handle of `fetch` queued at " in told
    assert told.endswith(" as a host task before it is queued")


def test_memory_that_other_streams_use_makes_nobody_wait_when_it_is_freed() -> None:
    simdevice.reset("lazy")
    rows, ids = torch.zeros(4, device="sim"), torch.arange(4).to("sim")
    side, host = simdevice.Stream(), torch.zeros(4).pin_memory()
    simdevice.synchronize()
    with simdevice.stream(side):
        host.copy_(rows[ids], non_blocking=True)
    ids.record_stream(side)
    del ids
    rows.fill_(7)
    simdevice.synchronize()
    assert host.tolist() == [7] * 4  # the race of `fill_` with the copy is not hidden
