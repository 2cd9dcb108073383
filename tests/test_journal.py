"""What outlives a run: the journal, recorded failures, and `--kv-replay` alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.geometry import geometries
from conformance.journal.records import Failure, Record, Store
from conformance.journal.running import Journal, Running, left_behind
from conformance.pool import Pool
from conformance.probe import DeviceLost, Watch
from conformance.programs import parse_program
from conformance.violation import Violation

CLASSES = """
import os
from pathlib import Path

FAULT = os.environ.get("FAULT", "")
LOST = []

class Ends(TokenPool):
    def load_cpu_copy(self, *given, **named):
        if FAULT == "ends":
            os._exit(3)
        super().load_cpu_copy(*given, **named)

class Sticky(TokenPool):
    def __init__(self, *given, **named):
        if LOST:
            raise RuntimeError("the fault sticks")
        super().__init__(*given, **named)

    def get_cpu_copy(self, indices, *given, **named):
        if FAULT == "sticks":
            with Path("calls").open("a") as calls:
                calls.write(f"{len(indices)} ")
            if LOST or len(indices) >= 3:
                LOST.append(1)
                raise RuntimeError("the fault sticks")
        return super().get_cpu_copy(indices, *given, **named)

class Raises(TokenPool):
    def get_cpu_copy(self, indices, *given, **named):
        if FAULT == "raises" and len(indices) >= 3:
            raise RuntimeError("only three or more")
        return super().get_cpu_copy(indices, *given, **named)

class Picky(TokenPool):
    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        if FAULT == "picky" and self.page_size != 5:
            raise RuntimeError("only pages of five")

class Skips(TokenPool):
    def load_cpu_copy(self, copy, indices, *given, **named):
        if FAULT != "skips":
            super().load_cpu_copy(copy, indices, *given, **named)

def pool(cls, **more):
    return Pool(cls.__name__.lower(), partial(make_token, cls=cls), kind="token", **more)
"""
SAME_ROWS = "test_reload_restores_the_same_rows"
SIZES = (
    "size=25 page_size=5 layers=3 first_layer=1 dtype=bfloat16 chunk_tokens=8192 "
    "heads=7 head_dim=8 v_head_dim=11"
)
TRIP = f"{SIZES} | write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5"
ALONE = "--kv-replay"

Session = Callable[..., pytest.RunResult]


@pytest.fixture
def session(downstream: Any, monkeypatch: pytest.MonkeyPatch) -> Session:
    """`session(entries, *options, fault="")`: one run of one check of pools with that fault."""

    def run(entries: str, *options: str, fault: str = "", **more: Any) -> pytest.RunResult:
        monkeypatch.setenv("FAULT", fault)
        if ALONE not in options and "-k" not in options:
            options = ("-k", SAME_ROWS, *options)
        result: pytest.RunResult = downstream(entries, *options, classes=CLASSES, **more)
        return result

    return run


def kept(pytester: pytest.Pytester) -> list[dict[str, Any]]:
    path = pytester.path / ".pytest_cache" / "v" / "kv" / "failures"
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    return found


def keep(pytester: pytest.Pytester, *records: dict[str, Any]) -> None:
    path = pytester.path / ".pytest_cache" / "v" / "kv" / "failures"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(records), "utf-8")


def record(check: str = SAME_ROWS, pool: str = "skips", **changes: Any) -> dict[str, Any]:
    return {
        "node": f"test_kv.py::{check}[{pool}]",
        "check": check,
        "pool": pool,
        "clause": check.removeprefix("test_"),
        "replay": TRIP,
        "found": "bytes of nobody",
        "crashed": False,
        "first_seen": "2025-01-31",
        **changes,
    }


def journals(pytester: pytest.Pytester) -> list[Path]:
    return sorted((pytester.path / ".pytest_cache" / "d" / "kv").glob("running-*"))


def answers(result: pytest.RunResult) -> list[str]:
    """What the section on the replay says."""
    at = next(i for i, line in enumerate(result.outlines) if " kv replay " in line)
    section = result.outlines[at + 1 :]
    end = next(i for i, line in enumerate(section) if line.startswith("=") or " in " in line)
    return section[:end]


# -- what a process that ends leaves behind --------------------------------------------


def test_process_that_ends_leaves_its_program(
    session: Session, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = "[pool(Ends), pool(Skips)]"
    session(pools, "--collect-only")  # writes the files
    monkeypatch.setenv("FAULT", "ends")
    assert pytester.runpytest_subprocess("-q", "-k", SAME_ROWS).ret == 3
    (left,) = journals(pytester)
    assert left.read_text("utf-8").splitlines()[1] == TRIP

    told = session(pools, "-k", f"{SAME_ROWS} and not ends")
    told.assert_outcomes(passed=1)
    lines = [
        f"kv: a process ended while {SAME_ROWS}[ends] was running",
        f"  replay    pytest -k '{SAME_ROWS}[ends]' --kv-replay '{TRIP}'",
        "  recorded: --kv-replay alone runs it in a process of its own",
    ]
    assert told.outlines[: len(lines)] == lines
    assert journals(pytester) == []
    (found,) = kept(pytester)
    assert (found["pool"], found["replay"], found["crashed"]) == ("ends", TRIP, True)

    again = session(pools, ALONE, fault="ends")
    assert again.ret == pytest.ExitCode.TESTS_FAILED
    assert answers(again) == [
        f"STILL FAILING {SAME_ROWS}[ends] {TRIP} (exit status 3)",
        "0 fixed, 1 still failing, 0 not applicable",
    ]
    again.stdout.fnmatch_lines(
        [
            f"{SAME_ROWS}[[]ends[]]: the process ended while this program ran (exit status 3)",
            f"  geometry  {SIZES}",
            "  program   write r0 at 5",
            "            offload r0 as c0",
        ]
    )
    fixed = session(pools, ALONE)
    assert fixed.ret == pytest.ExitCode.OK
    assert answers(fixed)[0] == f"FIXED {SAME_ROWS}[ends] {TRIP}"
    assert kept(pytester) == journals(pytester) == []


def test_worker_that_ends_leaves_its_program(session: Session, pytester: pytest.Pytester) -> None:
    pools = "[pool(Ends), pool(Skips)]"
    result = session(pools, "-n", "2", fault="ends")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"kv: a process ended while {SAME_ROWS}[[]ends[]] was running"])
    assert journals(pytester) == []
    assert [(found["pool"], found["crashed"]) for found in kept(pytester)] == [("ends", True)]
    keep(pytester, *kept(pytester), record())
    again = session(pools, "-n", "2", ALONE, fault="ends")
    assert again.ret == pytest.ExitCode.TESTS_FAILED
    assert answers(again) == [
        f"STILL FAILING {SAME_ROWS}[ends] {TRIP} (exit status 3)",
        f"FIXED {SAME_ROWS}[skips] {TRIP}",
        "1 fixed, 1 still failing, 0 not applicable",
    ]
    assert [found["pool"] for found in kept(pytester)] == ["ends"]


RUNNING = Running("test_kv.py::test_x[a]", "test_x", "a", "x", 1234)


def test_journal_holds_the_last_program(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path, "gw0", RUNNING)
    assert journal is not None
    journal.write("a long program; overwrite")
    journal.write("overwrite")
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("running-gw0-")
    head, program = path.read_text("utf-8").splitlines()
    assert json.loads(head) == {
        "node": "test_kv.py::test_x[a]",
        "check": "test_x",
        "pool": "a",
        "clause": "x",
        "pid": 1234,
    }
    assert program == "overwrite"
    journal.close()
    assert list(tmp_path.iterdir()) == []


def test_journal_of_a_live_process_is_left_alone(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path, "main", RUNNING)
    assert journal is not None
    journal.write("overwrite")
    (live,) = tmp_path.iterdir()
    (tmp_path / "running-main-new.txt").touch()
    gone = tmp_path / "running-main-gone.txt"
    gone.write_text(live.read_text("utf-8") + "the tail of an older program", "utf-8")
    ((path, running),) = left_behind(tmp_path)
    journal.close()
    assert path == gone
    assert (running.node, running.replay) == (RUNNING.node, "overwrite")


def test_no_journal_where_none_can_be_written(tmp_path: Path) -> None:
    assert Journal.open(tmp_path / "missing", "main", RUNNING) is None


def test_process_that_ends_before_any_program(session: Session, pytester: pytest.Pytester) -> None:
    session("[pool(Skips)]")
    folder = pytester.path / ".pytest_cache" / "d" / "kv"
    journal = Journal.open(folder, "main", RUNNING)
    assert journal is not None
    copy = folder / "running-main-copy.txt"
    copy.write_bytes(next(folder.glob("running-*")).read_bytes())
    journal.close()
    result = session("[pool(Skips)]")
    assert result.outlines[:2] == [
        "kv: a process ended while test_x[a] was running",
        "  no program of it had begun",
    ]
    assert kept(pytester) == journals(pytester) == []


# -- a device that no longer answers ---------------------------------------------------


def test_lost_device_keeps_the_first_program(session: Session, pytester: pytest.Pytester) -> None:
    result = session("[pool(Sticky), pool(Skips)]", "--kv-report=out.json", fault="sticks")
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    calls = [int(call) for call in (pytester.path / "calls").read_text("utf-8").split()]
    assert [call for call in calls if call >= 3] == calls[-1:], "it ran on"
    (found,) = kept(pytester)
    assert found["crashed"]
    *before, last = found["replay"].split("; ")
    assert before[-1].startswith("write")
    assert last.startswith("offload")
    text = result.stdout.str()
    assert "the device no longer answers: it was lost while this program ran\n" in text
    assert "  device    a new pool of this geometry raises RuntimeError: the fault sticks" in text
    assert f"--kv-replay '{found['replay']}'" in text
    assert "!!! the device no longer answers !!!" in text
    (outcome,) = json.loads((pytester.path / "out.json").read_text("utf-8"))["outcomes"]
    assert outcome["accused"] == []
    assert outcome["findings"] == [
        {key: found[key] for key in ("clause", "replay", "found", "crashed")}
    ]
    again = session("[pool(Sticky)]", ALONE, fault="sticks")
    assert answers(again)[0].endswith(f"{last} (the device no longer answers)")
    assert answers(again)[0].startswith(f"STILL FAILING {SAME_ROWS}[sticky] ")


def test_pool_that_raises_is_no_lost_device(session: Session, pytester: pytest.Pytester) -> None:
    result = session("[pool(Raises), pool(Skips)]", fault="raises")
    result.assert_outcomes(failed=1, passed=1)
    (found,) = kept(pytester)
    assert (found["clause"], found["crashed"]) == ("every_verb_works", False)
    assert found["replay"].count(";") == 1, "it was not shrunk"


def test_constructor_that_raises_is_no_lost_device(session: Session) -> None:
    result = session("[pool(Picky), pool(Skips)]", fault="picky")
    result.assert_outcomes(failed=1, passed=1)
    assert "only pages of five" in result.stdout.str()
    assert "no longer answers" not in result.stdout.str()


def test_device_that_is_lost_between_calls() -> None:
    pool = Pool("a", lambda geometry: None, kind="token")
    program = parse_program("write r0 at 5; overwrite")
    lost, works = geometries(pool, "cuda:99")[0], geometries(pool)[0]
    with pytest.raises(DeviceLost) as caught, Watch("x", "a", pool, lost, program):
        raise RuntimeError("an error of an earlier call")
    message = str(caught.value)
    assert "  found     raised RuntimeError: an error of an earlier call" in message
    assert "  device    a new tensor on cuda:99 raises " in message
    assert "  after" not in message
    with pytest.raises(RuntimeError, match="of its own"), Watch("x", "a", pool, works, program):
        raise RuntimeError("of its own")
    with pytest.raises(Violation), Watch("x", "a", pool, lost, program):
        raise Violation


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
    moved = TRIP.replace("page_size=5", "page_size=6")
    together = TRIP.replace("size=25 page_size=5", "size=9 page_size=5")
    why = {
        "gone": "'gone' is no longer declared",
        "negative_ids_are_refused": "negative_ids_are_refused is off at level required of "
        "contract 1",
        "state_travels": "state_travels needs what 'skips' has not: state",
        "known": "every_verb_works is known now: too slow",
        "unreadable": "program: cannot read the step 'wrote r0'; a program looks like "
        "'write r0 at 4..6; offload r0 as c0; overwrite; reload c0 at 9,8,12'",
        "moved": "page_size=6 is no longer tried for 'skips'",
        "together": "these sizes are no longer tried together for 'skips'",
        "renamed": "the contract has no clause 'of_old'",
        "gone_check": "the contract has no clause 'of_old'",
    }
    records = {
        "gone": record(pool="gone"),
        "negative_ids_are_refused": record("test_negative_ids_are_refused"),
        "state_travels": record("test_state_travels"),
        "known": record("test_offload_changes_nothing", clause="every_verb_works"),
        "unreadable": record(replay="wrote r0"),
        "moved": record(replay=moved),
        "together": record(replay=together),
        "renamed": record("test_any_rows_in_any_order", clause="of_old"),
        "gone_check": record("test_of_old"),
    }
    keep(pytester, *records.values())
    known = f'known={{"every_verb_works": Known("too slow", {TRIP.partition("| ")[2]!r})}}'
    result = session(f"[pool(Skips, {known})]", ALONE)
    assert result.ret == pytest.ExitCode.OK
    assert answers(result) == [
        *(
            f"NOT APPLICABLE {r['check']}[{r['pool']}] {r['replay']} ({why[name]})"
            for name, r in records.items()
        ),
        "0 fixed, 0 still failing, 9 not applicable",
    ]
    assert kept(pytester) == list(records.values())


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
