"""Illegal calls (level strict): refused with a clear error, and nothing changes."""

from __future__ import annotations

from hypothesis.strategies import DataObject

from conformance import scenarios
from conformance.case import Case
from conformance.suite.checks import for_each_program


@for_each_program
def test_out_of_range_ids_are_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.refusals)


@for_each_program
def test_negative_ids_are_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.refusals)


@for_each_program
def test_reserved_rows_are_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.refusals)


@for_each_program
def test_duplicate_ids_are_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.refusals)


@for_each_program
def test_illegal_move_is_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.refusals)


@for_each_program
def test_copy_survives_a_refusal(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.refusals)


@for_each_program
def test_wrong_dtype_is_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.refusals)


@for_each_program
def test_wrong_length_is_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.refusals)


@for_each_program
def test_foreign_copy_is_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.refusals)


@for_each_program
def test_state_mismatch_is_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.refusals)
