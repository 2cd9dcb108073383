"""The GitHub action: its steps, run with bash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from action_runner import ACTION, STEPS, Job, Remark, run_action
from drifting_package import CALLER, FAULT, LINE, ROOT, write_package

Action = Callable[..., Job]

ANNOTATE = Path(__file__).parent.parent / "hooks" / "annotate.py"
DRIFT = Remark(
    "error",
    {"file": "engine/pools.py", "line": str(LINE), "title": "override_accepts_every_keyword"},
    f"{FAULT}\npassed at engine/pools.py:{CALLER}",
)
PASSES = "def test_pool():\n    pass\n"
FAILS = 'def test_pool():\n    raise ValueError("a | b %, c:\\n and ::error::x")\n'
SCAN_ONLY = {"run_suite": "false"}
SUITE_ONLY = {"run_scan": "false"}


@pytest.fixture
def action(tmp_path: Path) -> Action:
    """`action(**inputs)` in `tmp_path / "work"`, which has a package without faults."""
    work = tmp_path / "work"
    write_package(work, drifted=False)

    def run(**inputs: str) -> Job:
        defaults = {
            "root": ROOT,
            "paths": "engine",
            "suite": "test_kv.py",
            "python": sys.executable,
        }
        return run_action(work, tmp_path / "runner", **defaults | inputs)

    return run


@pytest.fixture
def work(tmp_path: Path, action: Action, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # is fast
    return tmp_path / "work"


def test_everything_passes(action: Action, work: Path) -> None:
    Path("test_kv.py").write_text(PASSES)
    job = action()
    assert job.outcomes == dict.fromkeys(("inputs", "scan", "suite"), "success")
    assert job.remarks == []
    assert "## Signature scan: 0 errors, 0 warnings, 0 notes\n" in job.summary
    assert "## Conformance suite: 1 passed\n" in job.summary


def test_scan_and_suite_both_fail(action: Action, work: Path) -> None:
    write_package(work, drifted=True)
    Path("test_kv.py").write_text(FAILS)
    job = action()
    assert job.outcomes == {"inputs": "success", "scan": "failure", "suite": "failure"}
    raised = "ValueError: a | b %, c:\n and ::error::x"
    assert job.remarks == [DRIFT, Remark("error", {"title": "test_pool"}, raised)]
    assert "## Signature scan: 1 error, 0 warnings, 0 notes\n" in job.summary
    assert "| <code>engine.pools.NPUPool.get_cpu_copy</code> |" in job.summary
    assert "\n## Conformance suite: 1 failed\n" in job.summary
    assert "\n| <code>test_pool</code> | ValueError: a &#124; b %, c: |\n" in job.summary


def test_suite_runs_after_a_scan_that_failed(action: Action, work: Path) -> None:
    write_package(work, drifted=True)
    Path("test_kv.py").write_text(PASSES)
    job = action()
    assert job.failed
    assert job.outcomes["suite"] == "success"
    assert "1 passed" in job.log


def test_failing_suite_fails_the_job(action: Action, work: Path) -> None:
    Path("test_kv.py").write_text(FAILS)
    assert action().outcomes == {"inputs": "success", "scan": "success", "suite": "failure"}


@pytest.mark.parametrize("drifted", [False, True])
def test_only_the_scan(action: Action, work: Path, drifted: bool) -> None:
    write_package(work, drifted)
    job = action(**SCAN_ONLY, suite="")
    assert job.outcomes["suite"] == "skipped"
    assert job.failed is drifted
    assert job.remarks == ([DRIFT] if drifted else [])
    assert "Conformance suite" not in job.summary


def test_only_the_suite(action: Action, work: Path) -> None:
    write_package(work, drifted=True)
    Path("test_kv.py").write_text(PASSES)
    job = action(**SUITE_ONLY, root="")
    assert job.outcomes == {"inputs": "success", "scan": "skipped", "suite": "success"}
    assert "Signature scan" not in job.summary


def test_suite_that_is_ours(action: Action, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    Path("conftest.py").write_text(
        "from conformance import Family\n"
        "from reference_pools import KVPool\n"
        "from reference_pools.broken.sglang_25828 import DropsKeyword\n"
        "def pytest_kv_pools():\n"
        "    where = DropsKeyword.__module__\n"
        "    exempt = {f'{where}.DropsKeyword': 'no pool is made'}\n"
        "    return [Family(KVPool, packages=[where], exempt=exempt)]\n"
    )
    Path("test_kv.py").write_text("from conformance.suite import *\n")
    job = action(**SUITE_ONLY, suite="test_kv.py\n-k\noverride_accepts_every_keyword")
    message = Path(__file__).parent / "messages" / "override_accepts_every_keyword.txt"
    (remark,) = job.remarks
    assert remark.properties == {"title": "test_override_accepts_every_keyword[DropsKeyword]"}
    assert remark.message == message.read_text(encoding="utf-8").rstrip()
    assert "| override_accepts_every_keyword: An override accepts every" in job.summary


# -- the inputs of the scan -------------------------------------------------------


def test_verbs_and_baseline_reach_the_scan(action: Action, work: Path) -> None:
    write_package(work, drifted=True)
    entry = {
        "clause": "override_accepts_every_keyword",
        "class": "engine.pools.NPUPool",
        "verb": "get_cpu_copy",
        "parameter": "mamba_indices",
        "severity": "error",
        "reason": "is repaired next week",
    }
    Path("kv.json").write_text(json.dumps({"version": 1, "findings": [entry]}))
    job = action(**SCAN_ONLY, baseline="kv.json")
    assert not job.failed
    assert "1 accepted" in job.summary
    job = action(**SCAN_ONLY, verbs="get_cpu_copy, free")
    assert "'free'" in job.remarks[0].message


def test_stale_entry_fails_and_is_shown_on_the_baseline(action: Action, work: Path) -> None:
    entry = dict.fromkeys(("clause", "class", "verb", "parameter", "reason"), "gone")
    entry["severity"] = "error"
    Path("kv.json").write_text(json.dumps({"version": 1, "findings": [entry]}))
    job = action(**SCAN_ONLY, baseline="kv.json")
    assert job.failed
    assert job.remarks[0].properties["file"] == "kv.json"


def test_sarif_is_written_also_when_the_scan_fails(action: Action, work: Path) -> None:
    write_package(work, drifted=True)
    job = action(**SCAN_ONLY, sarif="out of scan.sarif")
    assert job.failed
    (run,) = json.loads(Path("out of scan.sarif").read_text(encoding="utf-8"))["runs"]
    assert [result["level"] for result in run["results"]] == ["error"]


def test_sarif_that_cannot_be_written_fails(action: Action, work: Path) -> None:
    job = action(**SCAN_ONLY, sarif="nowhere/scan.sarif")
    assert job.failed
    assert "scan: nowhere/scan.sarif cannot be written" in job.log


def test_scan_that_cannot_run_says_why_and_the_suite_runs(action: Action, work: Path) -> None:
    Path("test_kv.py").write_text(PASSES)
    job = action(root="engine.pools:Gone%0A,:\n::error::x")
    assert job.outcomes == {"inputs": "success", "scan": "failure", "suite": "success"}
    (remark,) = job.remarks
    assert remark.properties == {"title": "Signature scan"}
    assert remark.message.startswith("scan: ")
    assert "Gone%0A" in remark.message


@pytest.mark.parametrize("status", [1, 2])
def test_scan_that_crashes_says_how(action: Action, work: Path, status: int) -> None:
    python = work / "python"
    python.write_text(f"#!/bin/bash\nprintf '100%%\\n::error::x\\n' >&2\nexit {status}\n")
    python.chmod(0o755)
    job = action(**SCAN_ONLY, python=str(python))
    assert job.outcomes["scan"] == "failure"
    if status == 1:  # as if it had found something: the log has what it printed
        assert "100%\n::error::x\n" in job.log
    else:
        assert job.remarks == [Remark("error", {"title": "Signature scan"}, "100%\n::error::x")]


def test_python_that_is_not_there(action: Action, work: Path) -> None:
    job = action(**SCAN_ONLY, python="no-such-python")
    assert job.outcomes["scan"] == "failure"
    assert "no-such-python" in job.remarks[0].message


# -- hostile inputs ---------------------------------------------------------------

HOSTILE = """$(touch pwned) `touch pwned` ";touch pwned;' && touch pwned #\\ * é"""


def test_paths_are_taken_as_they_are(action: Action, work: Path) -> None:
    (work / "engine").rename(work / "--engine")
    write_package(work / HOSTILE, drifted=True)
    write_package(work / "a b", drifted=False)
    paths = f"\n--engine\n{HOSTILE}/engine\n\n"
    job = action(**SCAN_ONLY, paths=paths)
    assert not list(work.rglob("pwned"))
    assert job.remarks[0].properties["file"] == f"{HOSTILE}/engine/pools.py"
    assert not action(**SCAN_ONLY, paths="a b/engine").failed


def test_spaces_around_a_line_are_no_part_of_it(action: Action, work: Path, tmp_path: Path) -> None:
    Path("test_kv.py").write_text(PASSES)
    write_package(work / "a b", drifted=True)
    job = action(**SCAN_ONLY, paths="   a b/engine\t \n  \n")
    assert job.outcomes["scan"] == "failure"
    assert job.remarks[0].properties["file"] == "a b/engine/pools.py"
    words = {"suite": "  test_kv.py \n\t-k \n  test_pool or x", "install": "  a b \n \t\n\tc"}
    job = action(**SUITE_ONLY, python=make_python(tmp_path), **words)
    assert not job.failed
    assert "1 passed" in job.log
    assert Path("pip.txt").read_text().splitlines()[4:] == ["a b", "c"]


@pytest.mark.parametrize("name", ["root", "paths", "verbs", "baseline", "run_scan", "run_suite"])
def test_no_input_is_a_command(action: Action, work: Path, name: str) -> None:
    job = action(**{**SCAN_ONLY, name: HOSTILE})
    assert job.failed
    assert job.remarks
    assert not list(work.rglob("pwned"))


def test_words_of_pytest_are_taken_as_they_are(action: Action, work: Path) -> None:
    Path(f"test {HOSTILE}.py").write_text(PASSES)
    words = f"test {HOSTILE}.py\n\n-k\nnot ($(touch pwned) or x)\n-k\ntest_pool or x"
    job = action(**SUITE_ONLY, suite=words, sarif=HOSTILE)
    assert job.outcomes["suite"] == "success"
    assert not list(work.rglob("pwned"))


# -- the inputs of the suite ------------------------------------------------------

PYTHON = """\
#!/bin/bash
if [ "$2" = pip ]; then
  printf '%s\\n' "$@" > pip.txt
  exit {status}
fi
exec {python} "$@"
"""


def make_python(folder: Path, status: int = 0) -> str:
    """A Python that notes what pip is called with, and installs nothing."""
    path = folder / "my python" / "python"
    path.parent.mkdir()
    path.write_text(PYTHON.format(status=status, python=sys.executable))
    path.chmod(0o755)
    return str(path)


def test_install_has_the_suite_of_this_action(action: Action, work: Path, tmp_path: Path) -> None:
    Path("test_kv.py").write_text(PASSES)
    python = make_python(tmp_path)
    job = action(python=python, install="--extra-index-url=https://x/y z\n.[cpu, test]\n")
    assert not job.failed
    words = ["-m", "pip", "install", str(tmp_path / "runner" / "the action")]
    words += ["--extra-index-url=https://x/y z", ".[cpu, test]"]
    assert Path("pip.txt").read_text().splitlines() == words


def test_nothing_is_installed_unasked(action: Action, work: Path, tmp_path: Path) -> None:
    Path("test_kv.py").write_text(PASSES)
    assert not action(python=make_python(tmp_path)).failed
    assert not Path("pip.txt").exists()


def test_failed_installation_fails_before_the_suite(
    action: Action, work: Path, tmp_path: Path
) -> None:
    Path("test_kv.py").write_text(PASSES)
    job = action(python=make_python(tmp_path, status=3), install=".")
    assert job.outcomes["suite"] == "failure"
    assert "passed" not in job.log


@pytest.mark.parametrize(
    ("words", "status"), [("gone.py", 4), ("test_kv.py\n-k\nnothing", 5), ("--no-such-option", 4)]
)
def test_suite_that_did_not_run_fails_and_says_so(
    action: Action, work: Path, tmp_path: Path, words: str, status: int
) -> None:
    Path("test_kv.py").write_text(PASSES)
    left = tmp_path / "runner" / "kv-suite.xml"
    left.parent.mkdir()
    left.write_text("<testcase name='of an earlier run'><failure message='x'/></testcase>")
    job = action(**SUITE_ONLY, suite=words)
    assert job.outcomes["suite"] == "failure"
    assert [remark.message for remark in job.remarks] == [
        f"pytest ended with status {status}; see its log"
    ]


def test_summary_has_every_failure_and_the_pull_request_the_first(tmp_path: Path) -> None:
    bad = [
        f"<testcase name='a{i}'><failure message='m{i}&#10;more'/></testcase>" for i in range(11)
    ]
    rest = "<testcase name='b'><error message='e'/></testcase><testcase name='c'/>"
    rest += "<testcase name='d'><skipped message='s'/></testcase>"
    (tmp_path / "j.xml").write_text(f"<testsuite>{''.join(bad)}{rest}</testsuite>")
    (tmp_path / "s.md").write_text("before\n")
    words = [sys.executable, "-I", "-S", ANNOTATE, tmp_path / "j.xml", tmp_path / "s.md"]
    printed = subprocess.check_output(words, text=True)
    assert printed.splitlines() == [f"::error title=a{i}::m{i}%0Amore" for i in range(10)]
    rows = [f"| <code>a{i}</code> | m{i} |" for i in range(11)]
    assert (tmp_path / "s.md").read_text().splitlines() == [
        "before",
        "## Conformance suite: 11 failed, 1 error, 1 passed, 1 skipped",
        "",
        "| check | what |",
        "| --- | --- |",
        *rows,
        "| <code>b</code> | e |",
    ]


# -- the file ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"run_scan": "yes"}, "run-scan must be true or false"),
        ({"run_suite": "True"}, "run-suite must be true or false"),
        ({"run_scan": "false", "run_suite": "false"}, "nothing would run"),
        ({"root": ""}, "the scan needs root"),
        ({"suite": " \n \n"}, "suite is empty"),
    ],
)
def test_inputs_that_would_run_nothing_are_refused(
    action: Action, work: Path, inputs: dict[str, str], says: str
) -> None:
    job = action(**inputs)
    assert job.outcomes == {"inputs": "failure", "scan": "skipped", "suite": "skipped"}
    (remark,) = job.remarks
    assert says in remark.message


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step["id"])
def test_no_script_has_an_expression_in_it(step: dict[str, str]) -> None:
    assert "${{" not in step["run"]
    assert step["shell"] == "bash"


def test_every_input_is_used_and_described() -> None:
    used = {text for step in STEPS for text in step["env"].values()}
    for name, spec in ACTION["inputs"].items():
        assert f"${{{{ inputs.{name} }}}}" in used
        assert spec["description"].endswith(".")
        assert isinstance(spec["default"], str)


@pytest.mark.parametrize("name", ["hooks/scan.py", ".ci/run"])
def test_script_can_be_executed(name: str) -> None:
    assert os.access(Path(__file__).parent.parent / name, os.X_OK)
