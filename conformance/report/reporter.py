"""Gathers outcomes during a session; prints the table and writes the file at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.report import Outcome, Report, terminal
from conformance.report.json import render


class Reporter:
    """A plugin object of one session. With xdist, the controller's hears of every worker's
    checks, since outcomes travel in the properties of test reports."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.report = Report()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == Outcome.PROPERTY:
                self.report.outcomes.append(Outcome.from_json(str(value)))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.report.outcomes:
            terminal.write(terminalreporter, self.report, self.config)

    def pytest_sessionfinish(self) -> None:
        path = self.config.getoption("--kv-report")
        if path and not hasattr(self.config, "workerinput"):
            Path(path).write_text(render(self.report, self.config), encoding="utf-8")
