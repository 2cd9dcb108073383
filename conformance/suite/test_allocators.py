"""Allocators: who owns which id, after every step of many request lives."""

from __future__ import annotations

from hypothesis.strategies import DataObject

from conformance import scenarios
from conformance.case import Case
from conformance.claims import check_lacking_verbs
from conformance.suite.checks import for_each_program


@for_each_program
def test_ids_are_conserved(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_ids_are_handed_out_once(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_ids_name_rows(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_pages_run_slot_after_slot(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_capacity_can_be_used(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_exhaustion_changes_nothing(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_ids_keep_their_values(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_ids_are_their_own_memory(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_freeing_nothing_is_legal(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_clear_resets_everything(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_free_groups_free_at_the_end(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.grouped)


@for_each_program
def test_shared_ids_outlive_one_owner(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.shared)


@for_each_program
def test_mapping_dies_with_its_page(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.slid)


@for_each_program
def test_new_state_is_zero(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_translation_follows_compaction(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_allocator_forwards_the_verbs(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.allocations)


@for_each_program
def test_double_free_is_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.double_free)


@for_each_program
def test_duplicate_free_is_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.duplicate_free)


@for_each_program
def test_foreign_ids_are_not_freed(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.foreign_free)


def test_lacking_verbs_are_refused(kv_case: Case) -> None:
    check_lacking_verbs(kv_case)
