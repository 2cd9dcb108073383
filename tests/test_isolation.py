"""Programs in a child process: a crash is a failure with its program, and the rest is as ever."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any

import pytest
from torch import Tensor

from conformance import Allocator, Pool
from conformance.case import Case
from conformance.contract import find_clause
from conformance.isolation import carry_out, in_child
from conformance.troubles import StopProgram, Tally, Trouble
from conformance.violation import Violation
from reference_pools.allocators import PagedAllocator
from reference_pools.declarations import make_token

POOL = Pool("token", make_token, kind="token", page_sizes=[5])


class CrashesWhenFull(PagedAllocator):
    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        ids = super().alloc(count, held)
        if ids is None:
            os.kill(os.getpid(), signal.SIGSEGV)
        return ids


class ExitsOnFree(PagedAllocator):
    def free(self, ids: Tensor) -> None:
        super().free(ids)
        os._exit(3)


class KeepsLastId(PagedAllocator):
    """Not a crash: a fault that a child process has to tell."""

    def free(self, ids: Tensor) -> None:
        super().free(ids[: len(ids) - len(ids) % self.page_size])


def run(front: Any, program: str, clause: str = "ids_are_conserved", **more: Any) -> Case:
    allocator = Allocator("ids", front, POOL, level="strict", isolated=True, **more)
    case = Case(POOL, find_clause(clause), "cpu", "strict", 1, front=allocator)
    case.run(*case.read(program))
    return case


def test_program_that_passes_is_counted() -> None:
    case = run(PagedAllocator, "extend r0 by 5; retract r0 as c0; resume r1 from c0")
    assert (case.tally.programs, case.tally.reloads, case.tally.ids) == (1, 1, 10)


def test_signal_is_told_with_the_step_and_its_clause() -> None:
    with pytest.raises(Violation, match="killed by SIGSEGV") as caught:
        run(CrashesWhenFull, "extend r0 by 25; extend r1 by 1; free r0")
    assert caught.value.clause == "exhaustion_changes_nothing"
    assert "after     extend r1 by 1" in str(caught.value)
    assert "free r0" not in str(caught.value).split("replay")[0]


def test_exit_status_is_told() -> None:
    with pytest.raises(Violation, match="exited with status 3"):
        run(ExitsOnFree, "extend r0 by 5; free r0")


def test_trouble_of_the_child_is_judged_here() -> None:
    with pytest.raises(Violation, match="are free, expected") as caught:
        run(KeepsLastId, "extend r0 by 3; free r0; extend r1 by 1")
    assert caught.value.clause == "ids_are_conserved"


def test_error_of_the_suite_itself_is_raised_here() -> None:
    with pytest.raises(RuntimeError, match="needs an allocator|names rows"):
        run(PagedAllocator, "write r0 at 5")


def test_only_the_first_trouble_is_told_and_this_process_is_not_touched() -> None:
    seen: list[Trouble] = []
    mark: list[int] = []

    def work(on_trouble: Any, announce: Any) -> Tally:
        mark.append(1)
        announce(1, "ids_name_rows")
        with suppress(StopProgram):
            on_trouble(Trouble(1, "clause", "first", "ids_name_rows"))
        return Tally(programs=1)

    assert in_child(work, seen.append) == Tally(programs=1)
    assert [trouble.what for trouble in seen] == ["first"]
    assert mark == []


@pytest.mark.parametrize("isolated", [False, True])
def test_work_is_carried_out_where_it_is_asked_for(isolated: bool) -> None:
    here = os.getpid()

    def work(on_trouble: Any, announce: Any) -> Tally:
        return Tally(rows=int(os.getpid() == here))

    assert carry_out(work, print, isolated=isolated).rows == int(not isolated)
