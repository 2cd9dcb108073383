"""Offload and reload: what every pool restores, and what it leaves alone."""

from __future__ import annotations

from hypothesis.strategies import DataObject

from conformance import scenarios
from conformance.case import Case
from conformance.suite.checks import for_each_program


@for_each_program
def test_every_verb_works(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.anything)


@for_each_program
def test_reload_restores_other_rows(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.other_rows)


@for_each_program
def test_reload_restores_the_same_rows(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.same_rows)


@for_each_program
def test_any_rows_in_any_order(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.other_rows)


@for_each_program
def test_runs_may_begin_mid_page(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.other_rows)


@for_each_program
def test_reload_leaves_other_rows_alone(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.anything)


@for_each_program
def test_offload_changes_nothing(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.anything)


@for_each_program
def test_copy_is_its_own_memory(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.separate_memory)


@for_each_program
def test_reload_can_be_repeated(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.repeated)


@for_each_program
def test_copies_are_independent(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.two_copies)


@for_each_program
def test_splitting_gives_the_whole(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.split)


@for_each_program
def test_chunking_changes_nothing(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.other_rows)


@for_each_program
def test_empty_set_is_legal(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.empty)


@for_each_program
def test_companions_travel(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.anything)


@for_each_program
def test_index_tensors_are_not_modified(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.every_form)


@for_each_program
def test_every_index_form_is_accepted(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.every_form)


@for_each_program
def test_copy_is_on_the_host(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.anything)


@for_each_program
def test_copy_size_is_bounded(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.anything)
