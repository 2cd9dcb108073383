"""Each wait of each reference pool, left out in turn: what it protects is seen on "sim"."""

from __future__ import annotations

import pytest
from drawn_programs import POOLS
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import Pool, scenarios
from conformance.case import Case
from conformance.contract import find_clause
from conformance.suite.checks import quiet
from conformance.timing import prepare
from conformance.violation import Violation
from reference_pools import KVPool
from reference_pools.state import StatePool

TRIES = quiet(settings(max_examples=50, database=None, derandomize=True))
WAITS = {
    "offload": "copy_is_complete_on_return",
    "offload_index": "copy_is_complete_on_return",
    "reload": "reload_is_complete_on_return",
    "reload_index": "reload_is_complete_on_return",
}
ONE_STREAM = "everybody here works on one stream, in whose order the next reader comes later"
AGAIN = "the verb of its own class waits again, for everything"
PROTECTS_NOTHING = {
    **{(name, "move"): ONE_STREAM for name in POOLS},
    **{(name, "move_index"): ONE_STREAM for name in ("dsa", "hybrid-dsa")},
    **{(n, p): ONE_STREAM for n in POOLS for p in ("state_copied", "state_zeroed", "compact")},
    **{("dsa", point): AGAIN for point in ("offload", "reload")},
    ("sliding-window", "offload"): "a copy behind it, of what is in the window, blocks",
}


def waits_of(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The waits that the verbs of a pool come to."""
    seen: set[str] = set()
    for cls in (KVPool, StatePool):
        monkeypatch.setattr(cls, "wait", lambda _, point: seen.add(point))
    case = Case(pool, find_clause("every_verb_works"), "cpu", "strict", 1)
    uses = (scenarios.state_copied, scenarios.state_zeroed) if pool.has_state else ()
    for scenario in (scenarios.moved, scenarios.other_rows, *uses):
        check(case, scenario, 3)
    monkeypatch.undo()
    return seen


def check(case: Case, scenario: scenarios.Scenario, programs: int) -> None:
    @settings(TRIES, max_examples=programs)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        case.check(data, scenario)

    run()


def caught(pool: Pool) -> str:
    """The clause that some program, under some schedule, finds broken."""
    for scenario in (scenarios.other_rows, scenarios.moved, scenarios.lives):
        case = Case(pool, find_clause("timing_changes_nothing"), "sim", "strict", 1)
        try:
            check(case, scenario, 50)
        except Violation as violation:
            return violation.clause
        except BaseExceptionGroup as group:
            return next(e.clause for e in group.exceptions if isinstance(e, Violation))
    return ""


@pytest.mark.parametrize("name", POOLS)
def test_wait_that_is_left_out_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare()
    waits = waits_of(POOLS[name], monkeypatch)
    assert {"offload", "reload"} <= waits
    for wait in sorted(waits):
        for cls in (KVPool, StatePool):
            monkeypatch.setattr(cls, "unwaited", frozenset({wait}))
        nothing = (name, wait) in PROTECTS_NOTHING
        assert caught(POOLS[name]) == ("" if nothing else WAITS[wait]), wait


def test_pool_that_waits_is_not_accused() -> None:
    prepare()
    assert caught(POOLS["dsa"]) == ""
