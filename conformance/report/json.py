"""The report as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from conformance.report import Report
from conformance.report.header import environment

SCHEMA = 1
"""The version of this format; it changes when a field is removed or changes its meaning."""


def render(report: Report, config: pytest.Config) -> str:
    """`{"schema", "environment", "outcomes": [...]}`; an outcome has the fields of `Outcome`,
    and each of its `findings` the replay text that `--kv-replay` takes."""
    document = {
        "schema": SCHEMA,
        "environment": environment(config),
        "outcomes": [asdict(outcome) for outcome in report.outcomes],
    }
    return json.dumps(document, indent=2) + "\n"
