"""Runs the steps of `action.yml` as GitHub's runner would: with bash, and with its variables."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]

_INPUT = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")
_IS = re.compile(r"([a-z.-]+) == '([a-z]+)'")
_COMMAND = re.compile(r"::(error|warning|notice)(?: ([^:]*))?::(.*)")


class Remark(NamedTuple):
    """One annotation of a pull request."""

    kind: str
    properties: dict[str, str]
    message: str


@dataclass(frozen=True, slots=True)
class Job:
    """What a run of the action leaves: the outcome of each step, the log, the summary."""

    outcomes: dict[str, str]
    log: str
    summary: str

    @property
    def failed(self) -> bool:
        return "failure" in self.outcomes.values()

    @property
    def remarks(self) -> list[Remark]:
        found = [_COMMAND.fullmatch(line.strip()) for line in self.log.splitlines()]
        return [_remark(*command.groups("")) for command in found if command]


def run_action(workspace: Path, runner: Path, **inputs: str) -> Job:
    """Run every step in `workspace`; `runner` is a folder of the runner's own.

    An input's name has `_` for `-`.
    """
    runner.mkdir(exist_ok=True)
    action = runner / "the action"  # the runner's folders may have spaces
    if not action.exists():
        action.symlink_to(ROOT)
    given = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()}
    for name, value in inputs.items():
        assert name.replace("_", "-") in given
        given[name.replace("_", "-")] = value
    outcomes: dict[str, str] = {}
    logs, summaries = [], []
    for step in STEPS:
        if not _runs(step, given, outcomes):
            outcomes[step["id"]] = "skipped"
            continue
        result, summary = _run(step, given, workspace, runner, action)
        outcomes[step["id"]] = "failure" if result.returncode else "success"
        logs.append(result.stdout)
        summaries.append(summary)
    return Job(outcomes, "".join(logs), "".join(summaries))


def _run(
    step: dict[str, Any], given: dict[str, str], workspace: Path, runner: Path, action: Path
) -> tuple[subprocess.CompletedProcess[str], str]:
    script = runner / f"{step['id']}.sh"
    script.write_text(step["run"], encoding="utf-8")
    summary = runner / f"{step['id']}.md"
    summary.write_text("")
    variables = {name: _value(text, given) for name, text in step["env"].items()}
    ours = ("GITHUB_", "PYTEST_ADDOPTS", "PYTEST_XDIST", "PYTEST_CURRENT_TEST")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    result = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
        cwd=workspace,
        env=kept
        | {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(action),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(workspace),
            "RUNNER_TEMP": str(runner),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
    )
    return result, summary.read_text(encoding="utf-8")


def _value(text: str, given: dict[str, str]) -> str:
    """A value under `env:`, with its expression filled in."""
    if found := _INPUT.fullmatch(text):
        return given[found[1]]
    assert "${{" not in text
    return text


def _runs(step: dict[str, Any], given: dict[str, str], outcomes: dict[str, str]) -> bool:
    """Whether the condition of a step holds. Without a word on it, no step may have failed."""
    terms = step.get("if", "").removeprefix("${{").removesuffix("}}").split("&&")
    terms = [term.strip() for term in terms if term.strip()]
    if "!cancelled()" in terms:
        terms.remove("!cancelled()")
    elif "failure" in outcomes.values():
        return False
    values = {f"inputs.{name}": value for name, value in given.items()}
    values |= {f"steps.{step}.outcome": outcome for step, outcome in outcomes.items()}
    return all(_holds(term, values) for term in terms)


def _holds(term: str, values: dict[str, str]) -> bool:
    found = _IS.fullmatch(term)
    assert found, f"no such term is known here: {term}"
    return values[found[1]].lower() == found[2]


def _remark(kind: str, properties: str, message: str) -> Remark:
    pairs = (pair.partition("=") for pair in properties.split(",") if pair)
    return Remark(kind, {name: _plain(value) for name, _, value in pairs}, _plain(message))


def _plain(text: str) -> str:
    for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text
