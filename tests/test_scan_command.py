"""`python -m conformance scan`, with a scanner that finds what the test says."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scan_samples import ERROR, HOSTILE_FINDING, NOTE, WARNING, finding, methods, scan, signature
from source_trees import DSA, POOLS, write

import conformance
from conformance.__main__ import USAGE, main
from conformance.pool import Family
from conformance.scan.arguments import VERBS
from conformance.scan.formats import FORMATS
from conformance.signatures.findings import Finding, Scan, ScanError

ROOT = ("--root", "pkg.pools:KVCache")
SUMMARY = "2 classes under pkg.pools.KVCache, 4719 files (31 read): "


class Scanner:
    """Stands for the scanner: keeps what it was called with, gives what it is told to."""

    def __init__(self) -> None:
        self.results: list[Scan | Exception] = []
        self.calls: list[tuple[str, list[str], tuple[str, ...]]] = []

    def finds(self, *findings: Finding) -> None:
        self.results.append(scan(*findings))

    def __call__(self, root: str, trees: Sequence[str], verbs: Sequence[str]) -> Scan:
        self.calls.append((root, list(trees), tuple(verbs)))
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


@pytest.fixture
def scanner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scanner:
    module: Any = ModuleType("conformance.signatures.source")
    module.scan = Scanner()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    return module.scan


Refused = Callable[..., str]


@pytest.fixture
def refused(scanner: Scanner, capsys: pytest.CaptureFixture[str]) -> Refused:
    """`refused(*words)`: the one line that says why; nothing was printed or written."""

    def run(*words: str) -> str:
        before = sorted(Path.cwd().iterdir())
        assert main(["scan", *words]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("scan: ")
        assert err.count("\n") == 1
        assert sorted(Path.cwd().iterdir()) == before
        return err

    return run


# -- scan -------------------------------------------------------------------------


@pytest.mark.parametrize(("found", "status"), [((), 0), ((WARNING, NOTE), 0), ((ERROR,), 1)])
def test_exit_status(scanner: Scanner, found: tuple[Finding, ...], status: int) -> None:
    scanner.finds(*found)
    assert main(["scan", *ROOT, "pkg"]) == status


def test_scanner_gets_what_was_asked_for(scanner: Scanner) -> None:
    scanner.results = [scan(), scan()]
    main(["scan", *ROOT, "pkg", "other/pkg"])
    main(["scan", "a", "--root=x:Y", "--verbs", "save, load", "--format", "json", "b"])
    assert scanner.calls == [
        ("pkg.pools:KVCache", ["pkg", "other/pkg"], VERBS),
        ("x:Y", ["a", "b"], ("save", "load")),
    ]


def test_default_verbs_are_those_of_a_family() -> None:
    class Root:
        def get_cpu_copy(self) -> None: ...
        def load_cpu_copy(self) -> None: ...

    assert Family(Root).verbs == VERBS == ("get_cpu_copy", "load_cpu_copy", "move_kv_cache")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_printed_or_written(
    scanner: Scanner, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    scanner.results = [scan(ERROR, HOSTILE_FINDING)] * 2
    assert main(["scan", *ROOT, "pkg", "--format", name]) == 1
    printed = capsys.readouterr().out
    assert main(["scan", *ROOT, "pkg", "--format", name, "--output", "é out.txt"]) == 1
    assert capsys.readouterr().out == f"{SUMMARY}2 errors, 0 warnings, 0 notes\n"
    assert Path("é out.txt").read_text(encoding="utf-8") == printed


def test_terminal_that_cannot_show_a_name(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    scanner.finds(finding(cls="pkg.Poolé"))
    assert main(["scan", *ROOT, "pkg"]) == 1
    assert b"pkg.Pool\\xe9" in out.buffer.getvalue()


# -- baseline ---------------------------------------------------------------------


def test_baseline_life(scanner: Scanner, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["scan", *ROOT, "pkg"]
    scanner.finds(ERROR, WARNING, NOTE)
    assert main([*command, "--write-baseline", "b.json", "--reason", "at first"]) == 0
    assert capsys.readouterr().out.endswith("0 errors, 0 warnings, 1 note, 2 accepted, 0 stale\n")

    scanner.finds(ERROR, WARNING)
    assert main([*command, "--baseline", "b.json"]) == 0

    other = finding(parameter="other")
    scanner.finds(ERROR, WARNING, other)
    assert main([*command, "--baseline", "b.json"]) == 1

    scanner.finds(ERROR)
    capsys.readouterr()
    assert main([*command, "--baseline", "b.json"]) == 1
    assert "b.json: stale entry\n" in capsys.readouterr().out

    scanner.finds(ERROR, other)
    assert main([*command, "--write-baseline", "b.json", "--reason", "later"]) == 0
    entries = json.loads(Path("b.json").read_text(encoding="utf-8"))["findings"]
    assert {entry["parameter"]: entry["reason"] for entry in entries} == {
        "mamba_indices": "at first",
        "other": "later",
    }


def test_warning_that_became_an_error_needs_a_new_reason(
    scanner: Scanner, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["scan", *ROOT, "pkg"]
    eased = replace(ERROR, severity="warning", callers=())
    scanner.results = [scan(eased), scan(ERROR), scan(ERROR), scan(ERROR)]
    assert main([*command, "--write-baseline", "b.json", "--reason", "harmless"]) == 0
    capsys.readouterr()
    assert main([*command, "--baseline", "b.json"]) == 1
    printed = capsys.readouterr().out
    assert f"error {ERROR.clause} (got worse: accepted as a warning only)\n" in printed
    assert printed.endswith(
        "1 error, 0 warnings, 0 notes, 1 worse than accepted, 0 accepted, 0 stale\n"
    )
    assert main([*command, "--write-baseline", "b.json", "--reason", "see PR 2"]) == 0
    (entry,) = json.loads(Path("b.json").read_text(encoding="utf-8"))["findings"]
    assert (entry["severity"], entry["reason"]) == ("error", "see PR 2")
    assert main([*command, "--baseline", "b.json"]) == 0


@pytest.mark.parametrize(
    "words", [("--baseline", "b.json"), ("--write-baseline", "b.json", "--reason", "x")]
)
def test_bad_baseline_is_refused_and_kept(refused: Refused, words: tuple[str, ...]) -> None:
    Path("b.json").write_text("{", encoding="utf-8")
    assert "scan: b.json is not JSON: " in refused(*ROOT, "pkg", *words)
    assert Path("b.json").read_text(encoding="utf-8") == "{"


def test_missing_baseline_is_refused(refused: Refused) -> None:
    assert "none.json: there is no such file" in refused(*ROOT, "pkg", "--baseline", "none.json")


def test_bad_tree_leaves_the_baseline_alone(scanner: Scanner, refused: Refused) -> None:
    scanner.results = [ScanError("pkg: no such folder")]
    words = ("--write-baseline", "b.json", "--reason", "x")
    assert refused(*ROOT, "pkg", *words) == "scan: pkg: no such folder\n"


def test_output_that_cannot_be_written_leaves_the_baseline_alone(
    scanner: Scanner, refused: Refused
) -> None:
    scanner.finds(ERROR)
    words = ("--write-baseline", "b.json", "--reason", "x", "--output", "missing/out.txt")
    assert "scan: missing/out.txt cannot be written: No such file" in refused(*ROOT, "pkg", *words)


# -- bad input --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pkg"], "the following arguments are required: --root"),
        ([*ROOT], "what is to be scanned? Give at least one path or package"),
        ([*ROOT, "pkg", "--format", "xml"], "invalid choice: 'xml' (choose from 'table', 'json'"),
        ([*ROOT, "pkg", "--frmat", "json"], "unrecognized arguments: --frmat"),
        ([*ROOT, "pkg", "--verbs", "a,,b"], "--verbs: '' is no method name"),
        ([*ROOT, "pkg", "--verbs", "a-b"], "--verbs: 'a-b' is no method name"),
        ([*ROOT, "pkg", "--verbs", "a,a"], "--verbs: a,a names a verb twice"),
        ([*ROOT, "pkg", "--write-baseline", "b"], "--write-baseline needs --reason TEXT"),
        ([*ROOT, "pkg", "--write-baseline", "b", "--reason", " "], "needs --reason TEXT"),
        ([*ROOT, "pkg", "--reason", "x"], "--reason is for --write-baseline"),
        (
            [*ROOT, "pkg", "--baseline", "a", "--write-baseline", "b", "--reason", "x"],
            "give --baseline or --write-baseline, not both",
        ),
        ([*ROOT, "pkg", "--baseline", "b", "--output", "./b"], "would overwrite the baseline"),
        ([*ROOT, "--compare", "a", "b", "pkg"], "--compare takes the two trees itself"),
        ([*ROOT, "--compare", "a"], "argument --compare: expected 2 arguments"),
        (
            [*ROOT, "--compare", "a", "b", "--format", "sarif"],
            "--compare has no format sarif; it must be one of table, json, markdown",
        ),
        ([*ROOT, "--compare", "a", "b", "--baseline", "x"], "--compare uses no baseline"),
    ],
)
def test_bad_input(refused: Refused, words: list[str], message: str) -> None:
    assert message in refused(*words)


def test_unreadable_tree_is_named(scanner: Scanner, refused: Refused) -> None:
    scanner.results = [PermissionError(13, "Permission denied", "/x/y.py")]
    assert refused(*ROOT, "pkg") == "scan: /x/y.py: Permission denied\n"


# -- compare ----------------------------------------------------------------------


def test_compare(scanner: Scanner, capsys: pytest.CaptureFixture[str]) -> None:
    scanner.results = [scan(NOTE), scan(NOTE, ERROR), scan(ERROR), scan(ERROR)]
    assert main(["scan", *ROOT, "--compare", "old", "new"]) == 1
    assert "1 new error, 0 fixed, 1 unchanged\n" in capsys.readouterr().out
    assert main(["scan", *ROOT, "--compare", "old", "new", "--format=json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"]["unchanged"] == 1
    assert scanner.calls[:2] == [
        ("pkg.pools:KVCache", ["old"], VERBS),
        ("pkg.pools:KVCache", ["new"], VERBS),
    ]


def test_compare_writes_to_a_file(scanner: Scanner, capsys: pytest.CaptureFixture[str]) -> None:
    root = scan().root
    before = methods(get_cpu_copy=signature("indices"))
    after = methods(get_cpu_copy=signature("indices", mamba_indices=None))
    scanner.results = [scan(methods={root: before}), scan(methods={root: after})]
    words = ["--compare", "old", "new", "--format", "markdown", "--output", "out.md"]
    assert main(["scan", *ROOT, *words]) == 0
    assert capsys.readouterr().out == "0 new errors, 0 fixed, 0 unchanged\n"
    assert "now takes mamba_indices=" in Path("out.md").read_text(encoding="utf-8")


# -- the program ------------------------------------------------------------------


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["scan", "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: python -m conformance scan ")
    assert "default: get_cpu_copy,load_cpu_copy,move_kv_cache" in " ".join(text.split())
    assert "exit status: 0" in text
    assert "python -m conformance scan --root" in USAGE


BARE = """
import sys
for name in ("torch", "hypothesis", "pytest", "_pytest"):
    sys.modules[name] = None
from types import ModuleType
from conformance.__main__ import main
from conformance.signatures.findings import Finding, Place, Scan
from pathlib import Path

source = sys.modules["conformance.signatures.source"] = ModuleType("source")
found = Finding("c", "error", "C" * 99, "v", "p", "text " * 99, Place(Path("x.py"), 1))
source.scan = lambda root, trees, verbs: Scan(root, verbs, (), (found,) * 2000, 1, 1)
sys.exit(main(["scan", "--root", "a:B", "pkg", *sys.argv[1:]]))
"""


def bare(*words: str, **options: Any) -> subprocess.Popen[bytes]:
    """The command in a process that has neither torch nor hypothesis nor pytest."""
    return subprocess.Popen(
        [sys.executable, "-c", BARE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def test_needs_neither_torch_nor_hypothesis_nor_pytest() -> None:
    with bare("--format", "sarif") as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (1, b"")
    assert len(json.loads(out)["runs"][0]["results"]) == 2000


def test_scan_works_in_a_bare_environment(tmp_path: Path) -> None:
    write(tmp_path / "engine", {"pools.py": POOLS, "dsa.py": DSA})
    venv.create(tmp_path / "bare", with_pip=False)
    python = str(tmp_path / "bare" / "bin" / "python")
    environment = {"PYTHONPATH": str(Path(conformance.__file__).parent.parent), "PATH": ""}
    for package in ("torch", "hypothesis", "pytest"):
        assert subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode
    run = subprocess.run(
        [python, "-m", "conformance", "scan", "--root", "engine.pools:KVCache", "engine"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("engine/dsa.py:4: warning override_accepts_every_keyword")


def test_reader_that_stops_early_is_no_error() -> None:
    with bare() as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"x.py:1: error c")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1
