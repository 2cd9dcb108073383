"""Host tasks go through the same schedule as the device's operations."""

from __future__ import annotations

import pytest
import torch
from simdevice_device import sim_device  # noqa: F401  (each test has the device)
from simdevice_programs import pinned

from conformance import simdevice as sim


def test_task_runs_when_it_is_waited_for_only() -> None:
    done: list[int] = []
    handle = sim.defer(lambda: done.append(1) or "result", "task")
    sim.synchronize()
    assert done == []
    assert handle.wait() == "result"
    assert handle.wait() == "result"
    assert done == [1]
    assert handle.query()


def test_task_waits_for_events_streams_and_tasks() -> None:
    rows, buffer, seen = torch.ones(2, device="sim"), pinned(0.0, 0.0), []
    buffer.copy_(rows, non_blocking=True)
    event = sim.current_stream().record_event()
    first = sim.defer(lambda: seen.append(buffer.tolist()), "first", after=event)
    second = sim.defer(lambda: seen.append("second"), "second", after=[first, sim.Stream()])
    by_stream = sim.defer(lambda: buffer.tolist(), "third", after=sim.current_stream())
    second.wait()
    assert seen == [[1, 1], "second"]
    assert by_stream.wait() == [1, 1]
    assert sim.defer(lambda: 3, "never recorded", after=sim.Event()).wait() == 3


def test_task_that_does_not_wait_reads_too_early() -> None:
    buffer = pinned(0.0, 0.0)
    buffer.copy_(torch.ones(2, device="sim"), non_blocking=True)
    assert sim.defer(lambda: buffer.isnan().all().item(), "early").wait()


def test_polling_a_task_ends() -> None:
    host = torch.ones(2, device="sim").to("cpu", non_blocking=True)
    handle = sim.defer(host.tolist, "task", after=sim.current_stream())
    polls = 1
    while not handle.query():
        polls += 1
    assert polls > 1
    assert handle.wait() == [1, 1]


def test_task_raises_where_it_is_waited_for_and_the_device_lives_on() -> None:
    def fail() -> None:
        raise OSError("disk full")

    handle = sim.defer(fail, "task")
    for _ in range(2):
        with pytest.raises(OSError, match="disk full"):
            handle.wait()
    assert torch.ones(1, device="sim").tolist() == [1]


def test_task_has_the_default_stream_and_gradients() -> None:
    with sim.stream(sim.Stream()):
        handle = sim.defer(
            lambda: (sim.current_stream().stream_id, torch.is_grad_enabled()), "task"
        )
        assert handle.wait() == (0, True)
        assert sim.current_stream().stream_id == 1
    assert not sim.defer(lambda: torch.ones(1).add_(1).is_inference(), "task").wait()


def test_task_may_use_the_device_and_wait() -> None:
    def work() -> list[float]:
        rows = torch.ones(2, device="sim") + 1
        host = rows.to("cpu", non_blocking=True)
        sim.synchronize()
        return host.tolist()

    assert sim.defer(work, "task").wait() == [2, 2]


def test_task_may_wait_for_another_but_not_for_itself() -> None:
    inner = sim.defer(lambda: 1, "inner")
    assert sim.defer(lambda: inner.wait() + 1, "outer").wait() == 2
    handles: list[sim.Handle] = []
    handles.append(sim.defer(lambda: handles[0].wait(), "itself"))
    with pytest.raises(sim.SimError, match="waits for itself"):
        handles[0].wait()


def load_called_done(waits_for_all: bool) -> bool:
    """Two pools are loaded by an I/O thread; done is what the first one's task tells."""
    pools = [torch.zeros(2, device="sim") for _ in range(2)]
    disk = torch.ones(2)

    def load(pool: torch.Tensor) -> None:
        pool.copy_(disk)

    handles = [sim.defer(lambda pool=pool: load(pool), "load") for pool in pools]
    for handle in handles if waits_for_all else handles[:1]:
        handle.wait()
    return all(pool.tolist() == [1, 1] for pool in pools)


@pytest.mark.parametrize("schedule", ["lazy", "lifo", *(f"random:{n}" for n in range(20))])
def test_load_that_awaits_every_task_is_right(schedule: str) -> None:
    sim.reset(schedule)
    assert load_called_done(True)


def test_load_that_awaits_one_task_of_two_is_wrong() -> None:
    sim.reset("lazy")
    assert not load_called_done(False)
    sim.reset("eager")
    assert load_called_done(False)


def test_schedule_lets_tasks_run_early() -> None:
    outcomes = set()
    for seed in range(30):
        sim.reset(f"random:{seed}")
        done: list[int] = []
        sim.defer(lambda done=done: done.append(1), "task")
        for _ in range(3):
            torch.ones(1, device="sim")
        sim.synchronize()
        outcomes.add(bool(done))
    assert outcomes == {False, True}


def test_reset_forgets_tasks() -> None:
    done: list[int] = []
    handle = sim.defer(lambda: done.append(1), "task")
    sim.reset()
    assert handle.query()
    assert done == []
