"""What is in flight, and device memory: on a device whose operations finish late."""

from __future__ import annotations

from hypothesis.strategies import DataObject

from conformance import memory, scenarios
from conformance.case import Case
from conformance.suite.checks import for_each_program


@for_each_program
def test_copy_is_complete_on_return(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.other_rows)


@for_each_program
def test_reload_is_complete_on_return(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.other_rows)


@for_each_program
def test_timing_changes_nothing(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.lives)


def test_transfers_leak_nothing(kv_case: Case) -> None:
    memory.check(kv_case, memory.leaks)


def test_transfer_memory_is_bounded(kv_case: Case) -> None:
    memory.check(kv_case, memory.unbounded)


def test_nothing_needs_no_memory(kv_case: Case) -> None:
    memory.check(kv_case, memory.for_nothing)


def test_out_of_memory_changes_nothing(kv_case: Case) -> None:
    memory.check(kv_case, memory.after_out_of_memory)
