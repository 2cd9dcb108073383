"""Recurrent state beside the attention: it travels when it is named, and never otherwise."""

from __future__ import annotations

from hypothesis.strategies import DataObject

from conformance import scenarios
from conformance.case import Case
from conformance.suite.checks import for_each_program


@for_each_program
def test_state_travels(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.every_form, state="always")


@for_each_program
def test_state_stays_without_ids(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.other_rows, state="never")


@for_each_program
def test_state_copy_copies_every_buffer(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.state_copied)


@for_each_program
def test_zeroed_state_is_zero(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.state_zeroed)


@for_each_program
def test_state_is_refused_not_dropped(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.refusals)
