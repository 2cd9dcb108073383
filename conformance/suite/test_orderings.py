"""Orders of calls: whole request lives, and move."""

from __future__ import annotations

from hypothesis.strategies import DataObject

from conformance import scenarios
from conformance.case import Case
from conformance.suite.checks import for_each_program


@for_each_program
def test_resume_restores_the_request(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.lives)


@for_each_program
def test_move_accepts_every_token(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.moved)


@for_each_program
def test_move_carries_the_payload(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.moved)


@for_each_program
def test_move_carries_companions(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.moved)


@for_each_program
def test_move_leaves_other_rows_alone(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.moved)
