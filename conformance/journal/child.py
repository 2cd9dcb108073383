"""One program in a process of its own: what crashed once may crash again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.journal.records import DEVICE_LOST, Failure, replay_command
from conformance.options import ONLY
from conformance.report import Outcome

_LINES = 15


class ChildFailed(Exception):  # noqa: N818
    """The program failed in its process; `how` it ended it, or "" where it only failed."""

    def __init__(self, message: str, failures: Sequence[Failure], how: str) -> None:
        super().__init__(message)
        self.failures = tuple(failures)
        self.how = how


def run_alone(config: pytest.Config, node: str, failure: Failure, pool: str) -> Outcome:
    """The outcome of one program in the check `node`, from a new pytest process.

    It is given the arguments of this one, so that it collects the same; its cache and its
    report go to a folder that is then deleted. `ChildFailed` where it did not pass.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "pytest", *_arguments(config, failure.replay, folder)],
            cwd=config.invocation_params.dir,
            env=_environment(node),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        outcomes = json.loads(report.read_text("utf-8"))["outcomes"] if report.exists() else []
    if not outcomes:
        output = ended.stdout.decode(errors="replace")
        raise _ended(node, failure, pool, _status(ended.returncode), output)
    outcome = Outcome.from_json(json.dumps(outcomes[0]))
    if outcome.status == "failed":
        lost = any(found.crashed for found in outcome.findings)
        raise ChildFailed(outcome.message, outcome.findings, DEVICE_LOST if lost else "")
    return outcome


def _arguments(config: pytest.Config, replay: str, folder: str) -> list[str]:
    """Where an option is given twice, the last counts."""
    given = list(config.invocation_params.args)
    ours = [
        f"--kv-replay={replay}",
        f"--kv-report={folder}/report.json",
        f"--basetemp={folder}/tmp",
        "-o",
        f"cache_dir={folder}/cache",
    ]
    if config.pluginmanager.hasplugin("xdist"):
        ours.append("-n0")
    at = given.index("--") if "--" in given else len(given)
    return [*given[:at], *ours, *given[at:]]


def _environment(node: str) -> dict[str, str]:
    """This process's, with its import path, and without what makes it a worker of xdist."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST_")}
    return {**kept, ONLY: node, "PYTHONPATH": os.pathsep.join(sys.path)}


def _status(code: int) -> str:
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _ended(node: str, failure: Failure, pool: str, how: str, output: str) -> ChildFailed:
    check = node.rpartition("[")[0].rpartition(":")[2]
    geometry, _, program = failure.replay.rpartition(" | ")
    first, *steps = program.split("; ")
    lines = [
        f"{check}[{pool}]: the process ended while this program ran ({how})",
        "",
        f"  geometry  {geometry}",
        f"  program   {first}",
        *(f"            {step}" for step in steps),
        f"  replay    {replay_command(check, pool, failure.replay)}",
    ]
    printed = _telling(output)
    if printed:
        lines += ["", "  it printed", *(f"  | {line}".rstrip() for line in printed)]
    shown = Failure(failure.clause, failure.replay, f"its process ended ({how})", crashed=True)
    return ChildFailed("\n".join(lines), [shown], how)


def _telling(output: str) -> list[str]:
    """The lines that tell most: the beginning of a fatal error of Python's, whose innermost
    call comes first, or else the last ones."""
    _, fatal, after = output.partition("Fatal Python error")
    if fatal:
        return f"{fatal}{after}".splitlines()[:_LINES]
    return output.strip().splitlines()[-_LINES:]
