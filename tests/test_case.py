"""One check of one pool: what it shares with the others of its session, and what it never does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conformance import Allocator, Known, Pool, scenarios
from conformance.case import Case
from conformance.contract import CLAUSES
from conformance.geometry import geometries
from conformance.programs import parse_program
from conformance.violation import Violation
from reference_pools import TokenPool
from reference_pools.allocators import TokenAllocator
from reference_pools.broken.sglang_37534 import NarrowHostRows
from reference_pools.declarations import make_mla, make_token

TRIP = "write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5"
FEW = settings(
    derandomize=True, database=None, deadline=None, max_examples=5, phases=[Phase.generate]
)

TOKEN = Pool("token", make_token, kind="token")
NARROW = Pool("narrow", partial(make_mla, cls=NarrowHostRows), kind="mla")
IDS = Allocator("ids", TokenAllocator, Pool("single", make_token, kind="token", page_sizes=[1]))


@pytest.fixture
def session() -> Callable[..., Case]:
    """Makes the cases of one session, which share what has passed."""
    passed: dict[Any, Any] = {}

    def case(declared: Pool | Allocator, clause: str, replay: str | None = None) -> Case:
        is_allocator = isinstance(declared, Allocator)
        pool = declared.pool if is_allocator else declared
        made = Case(pool, CLAUSES[clause], "cpu", "strict", 1, replay)
        made.front, made.passed = declared if is_allocator else None, passed
        return made

    return case


def check(case: Case, scenario: scenarios.Scenario, state: scenarios.StateUse = "any") -> None:
    """As a check of the suite that passes or raises."""

    @FEW
    @given(st.data())
    def drawn(data: st.DataObject) -> None:
        case.check(data, scenario, state)

    drawn()
    case.complete()


# -- what is shared ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "clauses", "scenario"),
    [
        (TOKEN, ("reload_restores_other_rows", "any_rows_in_any_order"), scenarios.other_rows),
        (IDS, ("ids_are_conserved", "ids_name_rows"), scenarios.allocations),
    ],
    ids=["pool", "allocator"],
)
def test_check_from_a_strategy_that_has_passed_runs_nothing(
    session: Any, declared: Any, clauses: tuple[str, str], scenario: scenarios.Scenario
) -> None:
    first, second = (session(declared, clause) for clause in clauses)
    check(first, scenario)
    check(second, scenario)
    assert first.tally.programs == 5
    assert second.tally.programs == 0
    assert second.rows_compared == first.rows_compared == first.tally.rows > 0


def test_third_check_shares_what_the_first_has_run(session: Any) -> None:
    first, second, third = (
        session(TOKEN, clause)
        for clause in ("every_verb_works", "companions_travel", "offload_changes_nothing")
    )
    for case in (first, second, third):
        check(case, scenarios.anything)
    assert third.tally.programs == 0
    assert third.rows_compared == first.rows_compared > 0


@pytest.mark.parametrize(
    ("declared", "scenario", "state"),
    [
        (Pool("other", make_token, kind="token"), scenarios.other_rows, "any"),
        (TOKEN, scenarios.same_rows, "any"),
        (TOKEN, scenarios.other_rows, "never"),
    ],
    ids=["another pool", "another scenario", "another use of state"],
)
def test_another_strategy_is_run(
    session: Any, declared: Pool, scenario: scenarios.Scenario, state: Any
) -> None:
    check(session(TOKEN, "reload_restores_other_rows"), scenarios.other_rows)
    second = session(declared, "chunking_changes_nothing")
    check(second, scenario, state)
    assert second.tally.programs == 5


def test_another_session_runs_its_own() -> None:
    for _ in range(2):
        case = Case(TOKEN, CLAUSES["every_verb_works"], "cpu", "required", 1)
        check(case, scenarios.anything)
        assert case.tally.programs == 5


# -- what is not ---------------------------------------------------------------------------


def test_failing_check_shares_nothing(session: Any) -> None:
    first, second = (
        session(NARROW, clause) for clause in ("any_rows_in_any_order", "companions_travel")
    )
    for case in (first, second):
        with pytest.raises(Violation):
            check(case, scenarios.other_rows)
        assert case.tally.programs == 0
        assert case.passed == {}


def test_check_that_has_not_ended_shares_nothing(session: Any) -> None:
    """A failure may yet come, from a later program of the same check."""
    first, second = session(TOKEN, "every_verb_works"), session(TOKEN, "companions_travel")

    @FEW
    @given(st.data())
    def unfinished(data: st.DataObject) -> None:
        first.check(data, scenarios.anything)

    unfinished()
    check(second, scenarios.anything)
    assert (first.tally.programs, second.tally.programs) == (5, 5)


def test_replay_neither_shares_nor_is_spared(session: Any) -> None:
    check(session(TOKEN, "every_verb_works"), scenarios.anything)
    replayed = session(TOKEN, "companions_travel", TRIP)
    before = dict(replayed.passed)
    replayed.check(None, scenarios.anything)
    replayed.complete()
    assert (replayed.tally.programs, replayed.tally.rows) == (1, 1)
    assert replayed.passed == before

    alone = Case(TOKEN, CLAUSES["every_verb_works"], "cpu", "required", 1, TRIP)
    alone.check(None, scenarios.anything)  # type: ignore[arg-type]
    alone.complete()
    assert alone.passed == {}


def test_witness_of_a_known_failure_neither_shares_nor_is_spared(session: Any) -> None:
    known = {"companions_travel": Known("no reason", TRIP)}
    pool = Pool("token", make_token, kind="token", known=known)
    witness, drawn = session(pool, "companions_travel"), session(pool, "every_verb_works")
    witness.check(None, scenarios.anything)
    witness.complete()
    assert witness.passed == {}
    check(drawn, scenarios.anything)
    assert drawn.tally.programs == 5
    again = session(pool, "companions_travel")
    again.check(None, scenarios.anything)
    assert again.tally.programs == 1


def test_programs_that_met_a_known_failure_are_shared(session: Any) -> None:
    """What they found is known; the check of the known clause runs its witness."""
    known = {"reload_restores_the_same_rows": Known("narrow rows", TRIP)}
    pool = Pool("narrow", partial(make_mla, cls=NarrowHostRows), kind="mla", known=known)
    first, second = session(pool, "any_rows_in_any_order"), session(pool, "companions_travel")
    check(first, scenarios.other_rows)
    check(second, scenarios.other_rows)
    assert first.tally.known > 0
    assert second.tally.programs == 0
    with pytest.raises(Violation):
        session(pool, "reload_restores_the_same_rows").check(None, scenarios.other_rows)


def test_shared_programs_are_counted_once_in_the_table(downstream: Any) -> None:
    token = 'Pool("token", make_token, kind="token")'
    one = downstream(f"[{token}]", "-k", "any_rows")
    both = downstream(f"[{token}]", "-k", "any_rows or chunking")
    tables = [
        next(line for line in run.outlines if line.startswith("token ")).split()
        for run in (one, both)
    ]
    assert [line[1] for line in tables] == ["1/1", "2/2"]
    assert tables[0][2:] == tables[1][2:]


def test_failing_checks_of_one_strategy_all_fail(downstream: Any) -> None:
    narrow = 'Pool("narrow", partial(make_mla, cls=NarrowHostRows), kind="mla")'
    result = downstream(f"[{narrow}]", "-k", "any_rows or chunking")
    result.assert_outcomes(failed=2)


# -- under which name ------------------------------------------------------------------------


def test_case_of_an_allocator_is_the_allocators() -> None:
    known = {"ids_are_conserved": Known("leaks", "extend r0 by 1; free r0")}
    allocator = Allocator("leaky", TokenAllocator, IDS.pool, known=known)
    case = Case(IDS.pool, CLAUSES["ids_are_conserved"], "cpu", "required", 1)
    case.front = allocator
    assert (case.declared, case.name, case.owner) == (allocator, "leaky", "leaky")
    assert case.known == known["ids_are_conserved"]
    case.front = None
    assert (case.declared, case.name, case.known) == (IDS.pool, "single", None)


class AddsOne(TokenPool):
    """Accepts duplicates, which level strict refuses."""

    def check_tokens(self, indices: Any) -> None:
        super().check_tokens(indices.unique())


TWICE = "write r0 at 5; claim bad at 5,5; refuse offload bad as none"


@pytest.mark.parametrize(
    ("level", "undefined", "breaks"),
    [
        ("required", {}, False),
        ("strict", {}, True),
        ("strict", {"duplicate_ids_are_refused": "its callers never do"}, False),
    ],
)
def test_clause_that_is_off_is_not_judged(level: Any, undefined: Any, breaks: bool) -> None:
    pool = Pool("p", partial(make_token, cls=AddsOne), kind="token", undefined=undefined)
    case = Case(pool, CLAUSES["every_verb_works"], "cpu", level, 1)
    found = []
    try:
        case.run(geometries(pool)[0], parse_program(TWICE))
    except Violation as violation:
        found.append(violation.clause)
    assert found == (["duplicate_ids_are_refused"] if breaks else [])
