"""What is in flight on the simulated device, as a session and its adapters see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from conformance import Pool, scenarios
from conformance.adapters.plain import Plain
from conformance.case import Case
from conformance.contract import find_clause
from conformance.devices import is_simulated
from conformance.geometry import geometries, parse_geometry
from conformance.simdevice import door  # noqa: F401  (or pytester forgets it after a session)
from conformance.suite.checks import quiet
from conformance.timing import prepare
from conformance.violation import Violation
from reference_pools import HostCopy, TokenPool
from reference_pools.declarations import make_token

FEW = quiet(settings(max_examples=40, database=None, derandomize=True))


class CopiesAside(TokenPool):
    """Copies on a stream of its own behind everything queued, and waits when it is asked to."""

    unwaited = frozenset({"offload"})

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        device = torch.get_device_module(self.device)
        self.aside = device.Stream()
        self.aside.wait_stream(device.current_stream())
        with device.stream(self.aside):
            return super().get_cpu_copy(indices, mamba_indices)


@dataclass(frozen=True, slots=True)
class Waits(Plain):
    def wait(self, pool: Any, copy: Any) -> None:
        pool.aside.synchronize()


def accused(pool: Pool) -> str:
    """The clause that some program finds broken."""
    prepare()
    case = Case(pool, find_clause("timing_changes_nothing"), "sim", "strict", 1)

    @FEW
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        case.check(data, scenarios.lives)

    try:
        check()
    except Violation as violation:
        return violation.clause
    return ""


def copies_aside(**declared: Any) -> Pool:
    return Pool("p", partial(make_token, cls=CopiesAside), kind="token", **declared)


def test_copy_that_nobody_waits_for_is_incomplete() -> None:
    assert accused(copies_aside()) == "copy_is_complete_on_return"


def test_wait_that_the_adapter_names_completes_the_copy() -> None:
    assert accused(copies_aside(adapter=Waits())) == ""


def test_every_program_on_sim_has_a_schedule_that_is_replayed() -> None:
    pool = Pool("p", make_token, kind="token")
    seen: set[str] = set()

    @FEW
    @given(drawn=scenarios.programs(pool, "sim", scenarios.other_rows))
    def look(drawn: Any) -> None:
        geometry, _ = drawn
        assert parse_geometry(str(geometry), pool, "sim") == geometry
        seen.add(geometry.schedule.partition(":")[0])

    look()
    assert seen == {"lazy", "lifo", "chosen", "random"}


def test_other_devices_have_no_schedule() -> None:
    assert not any(geometry.schedule for geometry in geometries(Pool("p", make_token, kind="mla")))
    assert [is_simulated(device) for device in ("sim", "cpu", "cuda:0")] == [True, False, False]


@pytest.mark.parametrize(
    ("device", "message"),
    [("sim:1", "--kv-device=sim:1: there is one simulated device, sim")],
)
def test_device_that_is_not_there_is_a_usage_error(
    downstream: Any, device: str, message: str
) -> None:
    result = downstream('[Pool("t", make_token, kind="token")]', f"--kv-device={device}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in "\n".join([*result.outlines, *result.errlines])


def test_session_on_sim_tells_its_device_and_runs_its_clauses(downstream: Any) -> None:
    options = ("--kv-device=sim", "-k", "timing_changes or copy_is_complete")
    result = downstream('[Pool("t", make_token, kind="token")]', *options)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*device sim,*"])


def test_clauses_on_timing_are_off_elsewhere(downstream: Any) -> None:
    result = downstream('[Pool("t", make_token, kind="token")]', "-k", "timing_changes")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
