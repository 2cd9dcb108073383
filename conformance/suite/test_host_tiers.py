"""Host tiers: what is backed up comes back, while copies of many requests are in flight."""

from __future__ import annotations

from hypothesis.strategies import DataObject

from conformance import scenarios
from conformance.case import Case
from conformance.suite.checks import for_each_tier_program
from conformance.tiers.claims import check_lacking_host_verbs, check_row_widths


@for_each_tier_program
def test_host_tier_verbs_work(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.tiered)


@for_each_tier_program
def test_host_tier_restores_every_row(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.tiered)


@for_each_tier_program
def test_host_tier_carries_companions(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.tiered)


@for_each_tier_program
def test_host_tier_carries_state(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.tiered)


@for_each_tier_program
def test_host_tier_leaves_other_rows_alone(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.tiered)


def test_host_rows_are_as_wide(kv_case: Case) -> None:
    check_row_widths(kv_case)


@for_each_tier_program
def test_host_rows_are_conserved(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.filled)


@for_each_tier_program
def test_full_host_changes_nothing(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.filled)


@for_each_tier_program
def test_backup_is_complete_when_awaited(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.tiered)


@for_each_tier_program
def test_load_is_complete_when_awaited(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.tiered)


@for_each_tier_program
def test_layer_is_complete_when_awaited(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.tiered)


@for_each_tier_program
def test_host_tier_timing_changes_nothing(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.tiered)


@for_each_tier_program
def test_rows_in_flight_are_kept(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.tiered)


@for_each_tier_program
def test_copies_of_one_row_run_in_order(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.overlapped)


@for_each_tier_program
def test_copies_outlive_their_tier(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.closed)


@for_each_tier_program
def test_double_drop_is_refused(kv_case: Case, data: DataObject) -> None:
    kv_case.check(data, scenarios.tiered)


def test_lacking_host_verbs_are_refused(kv_case: Case) -> None:
    check_lacking_host_verbs(kv_case)
