"""Keeps what failed: journals while checks run, records of what was found, and what it tells.

Only a session's main process records. Findings of the workers of xdist reach it in the
properties of their reports, and what a worker that died was running is found in its journal.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from conformance.items import case_of
from conformance.journal.records import Record, Store
from conformance.journal.running import Journal, Running, left_behind, wait_for_end
from conformance.report import Outcome


class Recorder:
    """A plugin object of one session, its main process or a worker.

    `keeps` says whether what fails is recorded: not where programs are replayed.
    """

    def __init__(self, config: pytest.Config, *, keeps: bool) -> None:
        self.store = Store(config)
        self.ended: list[Running] = []
        self._keeps = keeps
        self._worker = getattr(config, "workerinput", {}).get("workerid", "main")
        self._untold: list[Running] = []
        self._recorded: set[tuple[str, str, bool]] = set()
        self._is_used = False
        self._lost: list[str] = []

    # -- while a check runs --------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        case = case_of(item)
        folder = self.store.folder() if hasattr(case, "journal") else None
        journal = _journal(item, case, folder, self._worker) if folder is not None else None
        if journal is None:
            return (yield)
        case.journal = journal
        try:
            return (yield)
        finally:
            case.journal = None
            journal.close()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == Outcome.PROPERTY and self._worker == "main":
                self._is_used = True
                self._record(report.nodeid, Outcome.from_json(str(value)))

    def _record(self, node: str, outcome: Outcome) -> None:
        if outcome.findings and self._keeps and self.store.usable:
            place = node, f"test_{outcome.clause}", outcome.name
            records = [Record.of(*place, failure) for failure in outcome.findings]
            self.store.add(records)
            self._recorded.update(record.place for record in records)

    # -- what ended processes left behind ------------------------------------------------

    def sweep(self) -> None:
        """Record what processes that are gone were running."""
        folder = self.store.folder()
        for path, running in left_behind(folder) if folder is not None else ():
            if running.replay:
                self.store.add([running.record])
            self.ended.append(running)
            self._untold.append(running)
            path.unlink(missing_ok=True)

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        """Told now: what ended one session may end this one too."""
        if self._worker == "main" and any(case_of(item) is not None for item in items):
            self.sweep()
        return self._told()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        if error is not None:
            self._is_used = True
            self._lost.append(str(node.gateway.id))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """By now xdist has seen its workers end."""
        folder = self.store.folder() if self._worker == "main" and self._is_used else None
        if folder is not None:
            for worker in self._lost:
                wait_for_end(folder, worker)
            self.sweep()

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self._told():
            terminalreporter.write_line(line, red=True)
        if self._recorded:
            many = len(self._recorded)
            what = "1 failure is recorded" if many == 1 else f"{many} failures are recorded"
            terminalreporter.write_line(f"{what}: --kv-replay alone runs what is recorded again")

    def _told(self) -> list[str]:
        lines: list[str] = []
        for running in self._untold:
            lines.append(f"kv: a process ended while {running.check}[{running.pool}] was running")
            if running.replay:
                lines.append(f"  replay    {running.record.command}")
                lines.append("  recorded: --kv-replay alone runs it in a process of its own")
            else:
                lines.append("  no program of it had begun")
        self._untold.clear()
        return lines


def _journal(item: pytest.Item, case: Any, folder: Path, worker: str) -> Journal | None:
    check = f"test_{case.clause.id}"
    # A check that replays several programs of one pool numbers its ids.
    node = f"{item.nodeid.rpartition('[')[0]}[{case.name}]"
    return Journal.open(
        folder, worker, Running(node, check, case.name, case.clause.id, os.getpid())
    )
