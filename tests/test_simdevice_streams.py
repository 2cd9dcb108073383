"""Streams, events, copies, threads: what waits for what."""

from __future__ import annotations

import threading

import pytest
import torch
from simdevice_device import sim_device  # noqa: F401  (each test has the device)
from simdevice_programs import pinned

from conformance import simdevice as sim


def bytes_of(tensor: torch.Tensor) -> set[int]:
    return set(tensor.reshape(-1).view(torch.uint8).tolist())


def test_late_copy_to_the_host_is_poisoned_until_it_has_run() -> None:
    floats = torch.arange(4.0, device="sim").to("cpu", non_blocking=True)
    integers = torch.arange(4, device="sim").to("cpu", non_blocking=True)
    assert floats.isnan().all()
    assert bytes_of(integers) == {0xA5}
    sim.synchronize()
    assert floats.tolist() == integers.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.bool, torch.complex64, torch.uint16])
def test_every_dtype_is_poisoned(dtype: torch.dtype) -> None:
    rows = torch.ones(3).to(dtype).to("sim")
    late = rows.to("cpu", non_blocking=True)
    assert bytes_of(late) != bytes_of(torch.ones(3).to(dtype))
    sim.synchronize()
    assert bytes_of(late) == bytes_of(torch.ones(3).to(dtype))


def test_blocking_copies_block() -> None:
    assert torch.arange(4, device="sim").cpu().tolist() == [0, 1, 2, 3]
    assert torch.arange(4, device="sim").to("cpu").tolist() == [0, 1, 2, 3]
    host = pinned(1.0)
    rows = host.to("sim")
    host.fill_(2)
    assert rows.tolist() == [1]


def test_copy_to_a_slice_of_pinned_memory_is_late() -> None:
    host = torch.zeros(4).pin_memory()
    host[1:3].copy_(torch.ones(2, device="sim"), non_blocking=True)
    assert host[[0, 3]].tolist() == [0, 0]
    assert host[1:3].isnan().all()
    sim.synchronize()
    assert host.tolist() == [0, 1, 1, 0]


def test_pinned_memory_is_known() -> None:
    host = torch.ones(3, 2, dtype=torch.float16).pin_memory()
    assert host.is_pinned()
    assert host[1:].is_pinned()
    assert host.tolist() == [[1, 1]] * 3
    assert not torch.ones(3).is_pinned()
    assert torch.ones(2, device="sim").to("cpu", non_blocking=True).is_pinned()


def test_pageable_memory_is_late_on_demand() -> None:
    sim.reset(pageable="late")
    host = torch.zeros(2)
    host.copy_(torch.ones(2, device="sim"), non_blocking=True)
    assert host.isnan().all()
    sim.synchronize()
    assert host.tolist() == [1, 1]
    rows = host.to("sim", non_blocking=True)
    host.fill_(5)
    assert rows.tolist() == [5, 5]


def test_late_pageable_memory_still_blocks_without_non_blocking() -> None:
    sim.reset(pageable="late")
    host = torch.zeros(2)
    host.copy_(torch.ones(2, device="sim"))
    assert host.tolist() == [1, 1]
    rows = host.to("sim")
    host.fill_(5)
    assert rows.tolist() == [1, 1]


def test_unknown_rule_or_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="'cuda' or 'late'"):
        sim.reset(pageable="never")
    for text in ("late", "random:", "random:x", "chosen:-1", "chosen:a", ""):
        with pytest.raises(ValueError, match="no schedule"):
            sim.reset(text)


def test_chooser_must_choose_one_there_is() -> None:
    sim.choosing(lambda count: count)
    torch.ones(1, device="sim")
    with sim.stream(sim.Stream()):
        torch.ones(1, device="sim")
    with pytest.raises(ValueError, match="chose 2 of 2"):
        sim.synchronize()


def test_event_waits_for_what_came_before_it_only() -> None:
    rows = torch.ones(2, device="sim")
    first = rows.to("cpu", non_blocking=True)
    event = sim.Event()
    event.record()
    second = rows.to("cpu", non_blocking=True)
    event.synchronize()
    assert first.tolist() == [1, 1]
    assert second.isnan().all()


def test_polling_ends() -> None:
    host = torch.ones(2, device="sim").to("cpu", non_blocking=True)
    event = sim.current_stream().record_event()
    polls = 1
    while not event.query():
        polls += 1
    assert polls > 1
    assert host.tolist() == [1, 1]
    torch.ones(2, device="sim")
    while not sim.current_stream().query():
        pass
    assert sim.Event().query()


def test_current_stream_is_of_the_thread() -> None:
    side = sim.Stream()
    seen = []
    with sim.stream(side):
        assert sim.current_stream() == side
        thread = threading.Thread(target=lambda: seen.append(sim.current_stream().stream_id))
        thread.start()
        thread.join()
        with sim.stream(None):
            assert sim.current_stream() == side
    assert seen == [0]
    assert sim.current_stream() == sim.default_stream()
    sim.set_stream(side)
    assert sim.current_stream().stream_id == side.stream_id == side.cuda_stream


def test_threads_share_the_device() -> None:
    rows = torch.arange(3.0, device="sim")
    found = {}

    def work() -> None:
        side = sim.Stream()
        side.wait_stream(sim.default_stream())
        with sim.stream(side):
            late = rows.to("cpu", non_blocking=True)
        found["early"] = bool(late.isnan().all())
        side.synchronize()
        found["late"] = late.tolist()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == {"early": True, "late": [0, 1, 2]}


def test_streams_made_by_many_threads_are_distinct() -> None:
    made: list[int] = []

    def work() -> None:
        for _ in range(200):
            side = sim.Stream()
            with sim.stream(side):
                torch.ones(1, device="sim")
            side.synchronize()
            made.append(side.stream_id)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 800


def test_stream_and_event_of_before_a_reset_do_no_harm() -> None:
    side, event = sim.Stream(), sim.Event()
    with sim.stream(side):
        rows = torch.ones(2, device="sim")
        event.record()
    sim.synchronize()
    sim.reset()
    event.synchronize()
    assert event.query()
    with sim.stream(side):
        assert (rows + 1).tolist() == [2, 2]


def test_reset_forgets_what_is_queued() -> None:
    host = torch.ones(2, device="sim").to("cpu", non_blocking=True)
    sim.reset()
    sim.synchronize()
    assert host.isnan().all()


def test_replayed_choices_may_be_too_large_or_too_few() -> None:
    sim.reset("chosen:9")
    for _ in range(2):
        with sim.stream(sim.Stream()):
            torch.ones(1, device="sim")
    torch.ones(1, device="sim")
    sim.synchronize()
    assert sim.schedule_text() == "chosen:2"
    for text in ("lazy", "lifo", "eager", "random:7"):
        sim.reset(text)
        assert sim.schedule_text() == text


def test_module_of_the_device() -> None:
    module = torch.get_device_module("sim")
    assert module.is_available()
    assert module.device_count() == 1
    host = torch.ones(2, device="sim").to("cpu", non_blocking=True)
    module.synchronize("sim")
    assert host.tolist() == [1, 1]
    with module.device(0), module.stream(module.Stream()):
        assert module.current_stream() != module.default_stream()
