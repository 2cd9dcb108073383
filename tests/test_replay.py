"""Recorded failures, and `--kv-replay` alone, which answers for each."""

from __future__ import annotations

from typing import Any

import pytest
from faulty_pools import (
    ALONE,
    SAME_ROWS,
    SIZES,
    TRIP,
    Session,
    answers,
    keep,
    kept,
    record,
    session_of,
)

from conformance.journal.records import Failure, Record, Store


@pytest.fixture
def session(downstream: Any, monkeypatch: pytest.MonkeyPatch) -> Session:
    return session_of(downstream, monkeypatch)


# -- what is recorded ------------------------------------------------------------------


def test_failure_is_recorded_until_it_is_fixed(session: Session, pytester: pytest.Pytester) -> None:
    failed = session("[pool(Skips)]", fault="skips")
    assert "1 failure is recorded: --kv-replay alone runs what is recorded again" in failed.outlines
    (found,) = kept(pytester)
    first_seen = found.pop("first_seen")
    assert first_seen[:2] == "20"
    assert found.pop("found").startswith("token row 5 of k, layer 1: holds bytes of nobody")
    assert found == {
        "node": f"test_kv.py::{SAME_ROWS}[skips]",
        "check": SAME_ROWS,
        "pool": "skips",
        "clause": "reload_restores_the_same_rows",
        "replay": TRIP,
        "crashed": False,
    }
    session("[pool(Skips)]").assert_outcomes(passed=1)
    assert len(kept(pytester)) == 1, "a run that passes proves nothing of this program"

    still = session("[pool(Skips)]", ALONE, fault="skips")
    assert still.ret == pytest.ExitCode.TESTS_FAILED
    assert answers(still) == [
        f"STILL FAILING {SAME_ROWS}[skips] {TRIP}",
        "0 fixed, 1 still failing, 0 not applicable",
    ]
    assert "  found     token row 5 of k, layer 1: holds bytes of nobody" in still.stdout.str()
    assert len(kept(pytester)) == 1

    fixed = session("[pool(Skips)]", ALONE)
    assert fixed.ret == pytest.ExitCode.OK
    assert answers(fixed) == [
        f"FIXED {SAME_ROWS}[skips] {TRIP}",
        "1 fixed, 0 still failing, 0 not applicable",
    ]
    assert kept(pytester) == []

    nothing = session("[pool(Skips)]", ALONE)
    assert nothing.ret == pytest.ExitCode.OK
    assert answers(nothing) == ["no failure is recorded"]


def test_every_program_of_a_check_is_answered(session: Session, pytester: pytest.Pytester) -> None:
    other = f"{SIZES} | write r0 at 7; offload r0 as c0"
    keep(pytester, record(), record(clause="offload_changes_nothing", replay=other))
    body = "from conformance.suite import *\ndef test_of_their_own(): assert False"
    result = session("[pool(Skips)]", ALONE, fault="skips", body=body)
    result.assert_outcomes(passed=1, failed=1)
    assert answers(result) == [
        f"STILL FAILING {SAME_ROWS}[skips] {TRIP}",
        f"FIXED {SAME_ROWS}[skips] {other}",
        "1 fixed, 1 still failing, 0 not applicable",
    ]
    assert kept(pytester) == [record()]


def test_what_was_recorded_may_no_longer_apply(session: Session, pytester: pytest.Pytester) -> None:
    moved = TRIP.replace("page_size=5", "page_size=25")
    together = TRIP.replace("size=25 page_size=5", "size=15 page_size=5")
    in_part = TRIP.replace("size=25 page_size=5", "size=9 page_size=5")
    why = {
        "gone": "'gone' is no longer declared",
        "negative_ids_are_refused": "negative_ids_are_refused is off at level required of "
        "contract 1",
        "state_travels": "state_travels needs what 'skips' has not: state",
        "off": "negative_ids_are_refused is off at level required of contract 1",
        "undefined": "duplicate_ids_are_refused is undefined for 'skips': slow",
        "known": "every_verb_works is known now: too slow",
        "unreadable": "program: cannot read the step 'wrote r0'; a program looks like "
        "'write r0 at 4..6; offload r0 as c0; overwrite; reload c0 at 9,8,12'",
        "in_part": "geometry: size=9 must be a positive multiple of page_size=5",
        "moved": "page_size=25 is no longer tried for 'skips'",
        "together": "these sizes are no longer tried together for 'skips'",
        "renamed": "the contract has no clause 'of_old'",
        "gone_check": "the contract has no clause 'of_old'",
    }
    records = {
        "gone": record(pool="gone"),
        "negative_ids_are_refused": record("test_negative_ids_are_refused"),
        "state_travels": record("test_state_travels"),
        "off": record(SAME_ROWS, clause="negative_ids_are_refused"),
        "undefined": record("test_every_verb_works", clause="duplicate_ids_are_refused"),
        "known": record("test_offload_changes_nothing", clause="every_verb_works"),
        "unreadable": record(replay="wrote r0"),
        "in_part": record(replay=in_part),
        "moved": record(replay=moved),
        "together": record(replay=together),
        "renamed": record("test_any_rows_in_any_order", clause="of_old"),
        "gone_check": record("test_of_old"),
    }
    keep(pytester, *records.values())
    known = f'known={{"every_verb_works": Known("too slow", {TRIP.partition("| ")[2]!r})}}'
    undefined = 'undefined={"duplicate_ids_are_refused": "slow"}'
    result = session(f"[pool(Skips, {known}, {undefined})]", ALONE)
    assert result.ret == pytest.ExitCode.OK
    assert answers(result) == [
        *(
            f"NOT APPLICABLE {r['check']}[{r['pool']}] {r['replay']} ({why[name]})"
            for name, r in records.items()
        ),
        f"0 fixed, 0 still failing, {len(records)} not applicable",
    ]
    assert kept(pytester) == list(records.values())


def test_allocators_are_replayed_as_well(session: Session, pytester: pytest.Pytester) -> None:
    program = f"{SIZES} | extend r0 by 1; retract r0 as c0"
    keep(pytester, record("test_ids_are_conserved", "leaks", replay=program))
    leaks = """Allocator("leaks", Leaks, pool(TokenPool))"""
    still = session(f"[{leaks}]", ALONE, fault="leaks")
    assert answers(still)[0] == f"STILL FAILING test_ids_are_conserved[leaks] {program}"
    fixed = session(f"[{leaks}]", ALONE)
    assert answers(fixed)[0] == f"FIXED test_ids_are_conserved[leaks] {program}"
    assert kept(pytester) == []


def test_what_is_not_selected_does_not_run(session: Session, pytester: pytest.Pytester) -> None:
    keep(pytester, record(), record("test_every_verb_works"))
    result = session("[pool(Skips)]", "-k", "test_every_verb_works", ALONE)
    assert result.ret == pytest.ExitCode.OK
    assert answers(result) == [
        f"NOT APPLICABLE {SAME_ROWS}[skips] {TRIP} "
        "(its check was not collected or selected, or the session ended first)",
        f"FIXED test_every_verb_works[skips] {TRIP}",
        "1 fixed, 0 still failing, 1 not applicable",
    ]
    assert kept(pytester) == [record()]


def test_replay_of_one_program_records_nothing(session: Session, pytester: pytest.Pytester) -> None:
    result = session("[pool(Skips)]", "-k", SAME_ROWS, "--kv-replay", TRIP, fault="skips")
    result.assert_outcomes(failed=1)
    assert kept(pytester) == []


def test_signatures_are_not_recorded(session: Session, pytester: pytest.Pytester) -> None:
    family = 'Family(KVPool, packages=["reference_pools.token", "reference_pools.mla"])'
    result = session(f"[pool(Skips), {family}]", "-k", "every_subclass_is_covered")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert kept(pytester) == []


def test_cleared_cache_forgets(session: Session, pytester: pytest.Pytester) -> None:
    keep(pytester, record())
    result = session("[pool(Skips)]", "--cache-clear", ALONE)
    assert answers(result) == ["no failure is recorded"]


def test_first_day_stays(pytester: pytest.Pytester) -> None:
    keep(pytester, record(), {"of": "another version"})
    store = Store(pytester.parseconfigure())
    store.add([Record.of(*store.read()[0].place[:1], SAME_ROWS, "skips", failure())])
    (found,) = kept(pytester)
    assert (found["first_seen"], found["replay"]) == ("2025-01-31", "overwrite")


def failure() -> Failure:
    return Failure("reload_restores_the_same_rows", "overwrite", "something else")


# -- the option ------------------------------------------------------------------------


def test_nothing_is_recorded_without_a_cache(session: Session, pytester: pytest.Pytester) -> None:
    off = ("-p", "no:cacheprovider")
    session("[pool(Skips)]", *off, fault="skips").assert_outcomes(failed=1)
    assert not (pytester.path / ".pytest_cache").exists()
    result = session("[pool(Skips)]", *off, ALONE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--kv-replay: nothing is recorded, since pytest's cache is off" in result.stderr.str()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("test_kv.py", "--kv-replay took the path 'test_kv.py' for its program; "),
        ("test_kv.py::test_x", "--kv-replay took the path 'test_kv.py::test_x' for its program; "),
        ("wrote r0", "--kv-replay='wrote r0': program: cannot read the step 'wrote r0'"),
        (f"{SIZES} |", "program: it has no step; "),
    ],
)
def test_text_that_is_no_program(session: Session, text: str, message: str) -> None:
    result = session("[pool(Skips)]", ALONE, text)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()
    assert "put --kv-replay last or write --kv-replay=recorded" in result.stderr.str()


@pytest.mark.parametrize("option", ["--kv-replay=recorded", "--kv-replay="])
def test_option_that_ends_at_its_own_word(session: Session, option: str) -> None:
    result = session("[pool(Skips)]", "-k", SAME_ROWS, option, "test_kv.py")
    assert result.ret == pytest.ExitCode.OK
    assert answers(result) == ["no failure is recorded"]
