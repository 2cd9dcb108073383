"""The options and ini values of the plugin: what they may be, and what `--kv-replay` asks for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance.contract import LEVELS, VERSION
from conformance.journal.records import Store

RECORDED = "recorded"
"""What `--kv-replay` stands for when it is given alone."""
ONLY = "KV_REPLAY_NODE"
"""The environment variable that names the one check that a child process runs."""


def check_options(config: pytest.Config) -> None:
    """`UsageError` for an option or ini value of ours that is not legal."""
    if config.getini("kv_level") not in LEVELS:
        raise pytest.UsageError(
            f"kv_level is {config.getini('kv_level')!r}, expected one of {', '.join(LEVELS)}"
        )
    version = config.getini("kv_contract")
    if version not in map(str, range(1, VERSION + 1)):
        raise pytest.UsageError(
            f"kv_contract is {version!r}, expected a number from 1 to {VERSION}"
        )
    report = config.getoption("--kv-report")
    if report is not None and not report.endswith(".json"):
        raise pytest.UsageError(f"--kv-report={report}: the name must end in .json")
    if report is not None and not Path(report).parent.is_dir():
        raise pytest.UsageError(f"--kv-report={report}: {Path(report).parent} is not a folder")
    if replays_recorded(config) and not Store(config).usable:
        raise pytest.UsageError(
            "--kv-replay: nothing is recorded, since pytest's cache is off or cannot be written; "
            "it can run one program: --kv-replay 'TEXT', as a failure prints it"
        )
    text = replay_text(config)
    if text is not None:
        _check_replay(text)


def is_replay(config: pytest.Config) -> bool:
    """Whether programs are replayed: one, or those that are recorded."""
    return config.getoption("--kv-replay") is not None


def replay_text(config: pytest.Config) -> str | None:
    """The one program that is replayed; None without `--kv-replay`, and where it is alone."""
    text = config.getoption("--kv-replay")
    return None if text is None or replays_recorded(config) else str(text)


def replays_recorded(config: pytest.Config) -> bool:
    """Whether the recorded failures are run again, and nothing else."""
    return config.getoption("--kv-replay") in (RECORDED, "")


def only_check() -> str | None:
    """The node id of the one check that this process is to run; None where it is no child."""
    return os.environ.get(ONLY)


def _check_replay(text: str) -> None:
    """`UsageError` for what cannot be a program: an argument that came after `--kv-replay`."""
    from conformance.programs import parse_program
    from conformance.violation import split_replay

    alone = f"to run the recorded failures, put --kv-replay last or write --kv-replay={RECORDED}"
    try:
        if parse_program(split_replay(text)[1]).steps:
            return
        problem = "program: it has no step"
    except ValueError as error:
        problem = str(error)
    if os.path.exists(text.partition("::")[0]):
        raise pytest.UsageError(f"--kv-replay took the path {text!r} for its program; {alone}")
    raise pytest.UsageError(f"--kv-replay={text!r}: {problem}; {alone}")
