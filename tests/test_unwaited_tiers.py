"""Each wait of a host tier, left out in turn: what it protects is seen on "sim"."""

from __future__ import annotations

import pytest
from drawn_programs import TIERS
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import HostTier, scenarios
from conformance.case import Case
from conformance.contract import find_clause
from conformance.declared import violations_in
from conformance.suite.checks import quiet, without_shrinking
from conformance.timing import prepare
from conformance.violation import Violation
from reference_pools.declarations import make_host_tier
from reference_pools.host import POINTS, Waits

TRIES = without_shrinking(quiet(settings(max_examples=50, database=None, derandomize=True)))
TIMING = "host_tier_timing_changes_nothing"
AWAITED = {"backup_is_complete_when_awaited", "load_is_complete_when_awaited"}
LAYER = {"layer_is_complete_when_awaited"}
IN_ORDER = {"copies_of_one_row_run_in_order"}
CAUGHT_BY = {
    "backup_waits_for_compute": {TIMING},
    "backup_waits_for_load": IN_ORDER,
    "load_waits_for_compute": {TIMING},
    "load_waits_for_backup": IN_ORDER,
    "copies_wait_for_ids": {TIMING},
    "copies_keep_ids": {TIMING},
    "stage_waits_for_its_last_copy": {TIMING},
    "streams_keep_stages": {"copies_outlive_their_tier"},
    "layer_waits_for_main": LAYER,
    "layer_waits_for_extras": LAYER,
    "wait_covers_main": AWAITED,
    "wait_covers_extras": AWAITED,
    "done_counts_main": AWAITED,
    "done_counts_extras": AWAITED,
    "free_checks_copies": {"rows_in_flight_are_kept"},
}
NO_EXTRAS = "this pool has one part"
ONE_LANE = "all copies of one way run on one stream, in whose order a stage is used"
PROTECTS_NOTHING = {
    **{
        (name, point): NO_EXTRAS
        for name in ("token-host", "mla-host")
        for point in ("layer_waits_for_extras", "wait_covers_extras", "done_counts_extras")
    },
    **{(n, "stage_waits_for_its_last_copy"): ONE_LANE for n in ("token-host", "mla-host")},
}


def caught(tier: HostTier) -> set[str]:
    """The clauses that some program, under some schedule, finds broken."""
    for scenario in (scenarios.tiered, scenarios.overlapped, scenarios.closed):
        case = Case(tier.pool, find_clause("host_tier_verbs_work"), "sim", "strict", 1, front=tier)
        try:
            check(case, scenario)
        except (Violation, BaseExceptionGroup) as error:
            return {violation.clause for violation in violations_in(error)}
    return set()


def check(case: Case, scenario: scenarios.Scenario) -> None:
    @TRIES
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        case.check(data, scenario)

    run()


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", ["token-host", "fp8-host", "hybrid-dsa-host"])
def test_wait_that_is_left_out_is_seen(name: str, point: str) -> None:
    prepare()

    def make(pool: object) -> object:
        return make_host_tier(pool, waits=Waits([point]))

    found = caught(HostTier(name, make, TIERS[name].pool, level="strict"))
    if (name, point) in PROTECTS_NOTHING:
        assert found == set()
    else:
        assert found
        assert found <= CAUGHT_BY[point]


def test_every_wait_is_left_out_and_every_reason_is_of_one_that_is_there() -> None:
    assert CAUGHT_BY.keys() == POINTS.keys()
    assert {point for _, point in PROTECTS_NOTHING} <= POINTS.keys()
