"""Inside `shims()` torch's own names lead to the device; outside they are as before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from simdevice_device import sim_device  # noqa: F401  (each test has the device)
from torch import Tensor

from conformance import simdevice as sim

NAMES = (
    (torch, ("Stream", "Event", "empty", "zeros", "tensor", "full", "empty_like", "arange")),
    (torch.cuda, ("Stream", "Event", "stream", "current_stream", "set_stream", "synchronize")),
    (torch.accelerator, ("synchronize", "current_stream", "set_stream", "memory_allocated")),
    (Tensor, ("new_empty", "new_zeros", "pin_memory", "is_pinned")),
)


def bound() -> list[object]:
    return [getattr(owner, name) for owner, names in NAMES for name in names]


def test_shims_leave_no_trace() -> None:
    program = """
import torch
from torch import Tensor
import conformance.simdevice as sim
from test_simdevice_shims import bound

before, methods = bound(), set(vars(Tensor))
with sim.shims():
    assert bound() != before
assert bound() == before
assert set(vars(Tensor)) == methods
"""
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, check=True)


def test_shims_may_be_nested() -> None:
    before, methods = bound(), set(vars(Tensor))
    with sim.shims():
        inside = bound()
        with sim.shims():
            assert bound() == inside
        assert bound() == inside
    assert bound() == before
    assert set(vars(Tensor)) == methods


def test_shims_are_undone_after_an_error() -> None:
    before = bound()
    with pytest.raises(KeyError), sim.shims():
        raise KeyError
    assert bound() == before


@pytest.mark.parametrize(
    "wait",
    [
        lambda: torch.cuda.synchronize(),
        lambda: torch.cuda.synchronize("cuda:0"),
        lambda: torch.cuda.current_stream().synchronize(),
        lambda: torch.cuda.default_stream().synchronize(),
        lambda: torch.accelerator.synchronize(),
        lambda: torch.accelerator.current_stream().synchronize(),
        lambda: torch.cuda.current_stream().record_event().synchronize(),
    ],
)
def test_waits_of_torch_wait_for_the_device(wait: Callable[[], None]) -> None:
    with sim.shims():
        host = torch.ones(2, device="sim").to("cpu", non_blocking=True)
        assert host.isnan().all()
        wait()
        assert host.tolist() == [1, 1]


@pytest.mark.parametrize("event", [lambda: torch.Event(), lambda: torch.cuda.Event(True)])
def test_events_of_torch_are_events_of_the_device(event: Callable[[], torch.Event]) -> None:
    with sim.shims():
        made = event()
        host = torch.ones(2, device="sim").to("cpu", non_blocking=True)
        made.record()
        assert not made.query()
        made.synchronize()
        assert host.tolist() == [1, 1]
        assert made.elapsed_time(made) == 0


def test_streams_of_torch_are_streams_of_the_device() -> None:
    with sim.shims():
        for side in (torch.cuda.Stream(), torch.Stream(), torch.Stream(device="cuda")):
            with torch.cuda.stream(side):
                assert torch.cuda.current_stream() == side
            with side:
                assert torch.accelerator.current_stream() == side
            side.wait_stream(torch.cuda.current_stream())
            torch.ones(1, device="sim").record_stream(side)
        torch.cuda.set_stream(side)
        assert sim.current_stream() == side
        assert torch.accelerator.memory_allocated() == sim.memory_allocated()


@pytest.mark.parametrize(
    "make",
    [
        lambda **pin: torch.empty(3, dtype=torch.float16, **pin),
        lambda **pin: torch.empty((2, 3), **pin),
        lambda **pin: torch.zeros(3, **pin),
        lambda **pin: torch.ones(3, device="cpu", **pin),
        lambda **pin: torch.full((3,), 7, **pin),
        lambda **pin: torch.tensor([1, 2], **pin),
        lambda **pin: torch.arange(3, **pin),
        lambda **pin: torch.empty_like(torch.ones(2, 3).t(), **pin),
        lambda **pin: torch.zeros_like(torch.ones(3), **pin),
        lambda **pin: torch.empty_strided((2, 3), (4, 1), **pin),
        lambda **pin: torch.ones(3).new_zeros(2, **pin),
        lambda **pin: torch.randn(3, **pin).mul(0),
    ],
)
def test_factories_make_pinned_memory(make: Callable[..., Tensor]) -> None:
    with sim.shims():
        plain, pinned = make(), make(pin_memory=True)
        assert not make(pin_memory=False).is_pinned()
        assert (pinned.shape, pinned.stride(), pinned.dtype) == (
            plain.shape,
            plain.stride(),
            plain.dtype,
        )
        if make(pin_memory=True).is_pinned():
            late = make(pin_memory=True)
            late.copy_(torch.ones_like(late, device="sim"), non_blocking=True)
            assert not torch.equal(late, torch.ones_like(late))
            sim.synchronize()
            assert torch.equal(late, torch.ones_like(late))


def test_factories_keep_their_values_and_refuse_other_devices() -> None:
    with sim.shims():
        assert torch.full((2,), 7, pin_memory=True).tolist() == [7, 7]
        assert torch.tensor([1, 2], pin_memory=True).tolist() == [1, 2]
        assert torch.ones(2, pin_memory=True, requires_grad=True).requires_grad
        assert torch.empty(2, pin_memory=True).isnan().all()
        with pytest.raises(RuntimeError, match="only CPU tensors can be pinned"):
            torch.zeros(2, device="sim", pin_memory=True)
