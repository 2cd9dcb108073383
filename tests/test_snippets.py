"""What the documents tell a user to copy can be used as it stands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from action_runner import ACTION

from conformance.scan.arguments import read

ROOT = Path(__file__).parent.parent
NAME = "OWNER/kvpool-conformance"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HEAD = "| input | default | what |\n"
SCAN = ("python -m conformance scan ", "kv-conformance scan ", "/tmp/kvpool/hooks/scan.py ")


class Snippet(NamedTuple):
    """A fenced block of a document."""

    where: str
    language: str
    text: str


def snippets() -> Iterator[Snippet]:
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]):
        text = path.read_text(encoding="utf-8")
        for found in FENCE.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield Snippet(f"{path.name}:{line}", found[1], found[2])


SNIPPETS = list(snippets())
YAML = {each.where: yaml.safe_load(each.text) for each in SNIPPETS if each.language == "yaml"}
CONFIGS = {where: each for where, each in YAML.items() if "repos" in each}
COMMANDS = [
    pytest.param(words, id=each.where)
    for each in SNIPPETS
    if each.language == "sh"
    for words in each.text.replace("\\\n", "").splitlines()
    if words.startswith(SCAN)
]


def dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a document."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, dict | list):
            yield from dicts(child)


def accepted(arguments: list[str]) -> bool:
    """Whether the scan takes these words; it raises `ScanError` where not."""
    taken = read(arguments)
    return bool(taken.trees or taken.compare)


def test_the_snippets_were_found() -> None:
    assert len(CONFIGS) >= 2
    assert len(YAML) > len(CONFIGS)
    assert len(COMMANDS) >= 3


@pytest.mark.parametrize("where", CONFIGS)
def test_pre_commit_takes_the_configuration(tmp_path: Path, where: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(CONFIGS[where]))
    subprocess.run([sys.executable, "-m", "pre_commit", "validate-config", path], check=True)


@pytest.mark.parametrize("where", CONFIGS)
def test_hooks_are_there_and_the_scan_takes_their_arguments(where: str) -> None:
    manifest = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    ours = {hook["id"] for hook in manifest}
    for repo in CONFIGS[where]["repos"]:
        assert repo["repo"] in ("local", f"https://github.com/{NAME}")
        for hook in repo["hooks"]:
            assert hook["id"] in ours
            assert accepted(hook["args"])


@pytest.mark.parametrize("where", [where for where in YAML if where not in CONFIGS])
def test_steps_pass_only_inputs_that_the_action_has(where: str) -> None:
    steps = [each for each in dicts(YAML[where]) if each.get("uses", "").startswith(f"{NAME}@")]
    assert steps
    for step in steps:
        assert set(step["with"]) <= set(ACTION["inputs"])
        assert all(isinstance(value, str) for value in step["with"].values())


def test_table_of_inputs_is_complete() -> None:
    documents = [path.read_text(encoding="utf-8") for path in ROOT.glob("docs/*.md")]
    (rest,) = [text.partition(HEAD)[2] for text in documents if HEAD in text]
    table = re.findall(r"^\| `([a-z-]+)` \| (?:`(.*)`)? ?\|", rest.partition("\n\n")[0], re.M)
    assert dict(table) == {name: spec["default"] for name, spec in ACTION["inputs"].items()}


@pytest.mark.parametrize("command", COMMANDS)
def test_scan_takes_the_arguments_of_a_command(command: str) -> None:
    words = shlex.split(command)
    start = words.index("scan") + 1 if "scan" in words else 1
    assert accepted(words[start:])
