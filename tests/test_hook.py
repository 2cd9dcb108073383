"""The pre-commit hook: run by pre-commit, from a clone, by a Python that has nothing installed."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from drifting_package import CALLER, FAULT, LINE, write_package
from drifting_package import ROOT as FAMILY

ROOT = Path(__file__).parent.parent
HOOK = ROOT / "hooks" / "scan.py"
NEEDED = ("conformance", "hooks", ".pre-commit-hooks.yaml")
ARGS = ["--root", FAMILY, "engine"]

Commit = Callable[[Path], str]
PreCommit = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Git and pre-commit see nothing of this user; `python3` has no installed packages."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    python.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        git |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@example.org"}
    return (
        kept
        | git
        | {
            "HOME": str(tmp_path),
            "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
            "PRE_COMMIT_HOME": str(tmp_path / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
    )


@pytest.fixture
def commit(environment: dict[str, str]) -> Commit:
    """`commit(folder)`: all that is in it, as a repository; the commit."""

    def run(folder: Path) -> str:
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
            subprocess.run(["git", *words], cwd=folder, env=environment, check=True)
        head = ["git", "rev-parse", "HEAD"]
        return subprocess.check_output(head, cwd=folder, env=environment, text=True).strip()

    return run


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """This working tree, as far as the hook may need it, still without a commit."""
    folder = tmp_path / "clone of kvpool"
    folder.mkdir()
    for name in NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.pyc"))
        else:
            shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture
def pre_commit(tmp_path: Path, environment: dict[str, str]) -> PreCommit:
    """`pre_commit(*words)` in `tmp_path / "downstream"`."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", *words, "--color=never"],
            cwd=tmp_path / "downstream",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=60,
        )

    return run


def test_try_repo(tmp_path: Path, clone: Path, commit: Commit, pre_commit: PreCommit) -> None:
    manifest = clone / ".pre-commit-hooks.yaml"
    # try-repo passes no arguments: here they are the hook's own.
    manifest.write_text(f"{manifest.read_text()}  args: {ARGS}\n")
    commit(clone)
    downstream = tmp_path / "downstream"
    write_package(downstream, drifted=True)
    commit(downstream)
    words = ("try-repo", str(clone), "kv-scan", "--all-files")

    result = pre_commit(*words)
    assert result.returncode == 1
    assert "KV pool signatures" in result.stdout
    assert "- exit code: 1\n" in result.stdout
    method, _, sentence = FAULT.partition(": ")
    assert result.stdout.endswith(
        f"engine/pools.py:{LINE}: error override_accepts_every_keyword\n"
        f"  {method}\n"
        f"    {sentence}\n"
        f"    passed at engine/pools.py:{CALLER}\n"
        "\n"
        f"1 class under engine.pools.KVCache, 1 file (1 read): 1 error, 0 warnings, 0 notes\n\n"
    )

    write_package(downstream, drifted=False)
    commit(downstream)
    result = pre_commit(*words)
    assert result.returncode == 0, result.stdout
    assert result.stdout.rstrip().endswith("Passed")


def test_as_configured(tmp_path: Path, clone: Path, commit: Commit, pre_commit: PreCommit) -> None:
    hook = {"id": "kv-scan", "args": [*ARGS, "--baseline", "kv.json"]}
    repo = {"repo": str(clone), "rev": commit(clone), "hooks": [hook]}
    downstream = tmp_path / "downstream"
    source = write_package(downstream, drifted=True)
    config = downstream / ".pre-commit-config.yaml"
    config.write_text(yaml.safe_dump({"repos": [repo]}))
    baseline = downstream / "kv.json"
    baseline.write_text('{"version": 1, "findings": []}')
    commit(downstream)

    result = pre_commit("run", "--files", str(source))
    assert result.returncode == 1
    assert "1 error, 0 warnings, 0 notes, 0 accepted, 0 stale\n" in result.stdout
    result = pre_commit("run", "--files", "kv.json")
    assert result.returncode == 0
    assert "(no files to check)Skipped" in result.stdout
    assert not list((tmp_path / "cache").rglob("py_env*"))  # nothing was installed


def test_without_arguments_it_says_what_it_needs(
    tmp_path: Path, clone: Path, commit: Commit, pre_commit: PreCommit
) -> None:
    commit(clone)
    write_package(tmp_path / "downstream", drifted=False)
    commit(tmp_path / "downstream")
    result = pre_commit("try-repo", str(clone), "--all-files")
    assert result.returncode == 1
    assert "scan: the following arguments are required: --root" in result.stdout


def test_manifest() -> None:
    manifest = ROOT / ".pre-commit-hooks.yaml"
    words = [sys.executable, "-m", "pre_commit", "validate-manifest", str(manifest)]
    subprocess.run(words, check=True)
    (hook,) = yaml.safe_load(manifest.read_text(encoding="utf-8"))
    assert ROOT / hook["entry"] == HOOK
    assert hook["pass_filenames"] is False
    assert os.access(HOOK, os.X_OK)


def scan(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", HOOK, *words], capture_output=True, text=True, **options
    )


def test_path_that_looks_like_an_option(tmp_path: Path) -> None:
    write_package(tmp_path, drifted=True)
    (tmp_path / "engine").rename(tmp_path / "--output")
    result = scan("--root", "pools:KVCache", "--", "--output", cwd=tmp_path)
    assert result.stderr == ""
    assert result.returncode == 1
    assert f"--output/pools.py:{LINE}: error" in result.stdout


def test_nothing_of_the_scanned_folder_is_run(tmp_path: Path) -> None:
    write_package(tmp_path, drifted=False)
    for name in ("json", "argparse", "conformance"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('was imported')\n")
    result = subprocess.run([sys.executable, HOOK, *ARGS], cwd=tmp_path, capture_output=True)
    assert result.returncode == 0, result.stderr


def test_python_that_is_too_old() -> None:
    code = "import runpy, sys; sys.version_info = (3, 8, 1); runpy.run_path({!r}, None, '__main__')"
    words = [sys.executable, "-I", "-S", "-c", code.format(str(HOOK)), *ARGS]
    result = subprocess.run(words, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr == f"scan: needs Python 3.11 or newer, {sys.executable} is 3.8\n"
    ast.parse(HOOK.read_text(encoding="utf-8"), feature_version=(3, 7))
