"""The journal: what a process that ends, or a device that is lost, leaves behind."""

from __future__ import annotations

import fcntl
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from faulty_pools import (
    ALONE,
    SAME_ROWS,
    SIZES,
    TRIP,
    Session,
    answers,
    journals,
    keep,
    kept,
    record,
    session_of,
)

from conformance.geometry import geometries
from conformance.journal.records import Store
from conformance.journal.running import Journal, Running, left_behind, wait_for_end
from conformance.pool import Pool
from conformance.probe import DeviceLost, Watch
from conformance.programs import parse_program
from conformance.violation import Violation


@pytest.fixture
def session(downstream: Any, monkeypatch: pytest.MonkeyPatch) -> Session:
    return session_of(downstream, monkeypatch)


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


@pytest.mark.parametrize(("errors", "is_kept"), [(0, True), (1, True), (9, False)])
def test_folder_is_made_although_another_process_makes_the_cache(
    errors: int, is_kept: bool, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = pytester.parseconfigure()
    made, left = config.cache.mkdir, [OSError("Directory not empty")] * errors

    def mkdir(name: str) -> Path:
        if left:
            raise left.pop()
        return made(name)

    monkeypatch.setattr(config.cache, "mkdir", mkdir)
    folder = Store(config).folder()
    assert (folder is not None and folder.is_dir()) == is_kept


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
    last = found["replay"].split("; ")[-1]
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


def test_process_that_still_ends_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "running-gw1-x.txt").write_text("")
    held = (tmp_path / "running-gw1-x.txt").open("r+")
    fcntl.flock(held, fcntl.LOCK_EX)
    begin = time.monotonic()
    wait_for_end(tmp_path, "gw0")
    assert time.monotonic() - begin < 1
    threading.Timer(0.2, held.close).start()
    wait_for_end(tmp_path, "gw1")
    assert held.closed
    assert time.monotonic() - begin < 4
