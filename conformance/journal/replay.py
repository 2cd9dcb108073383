"""`--kv-replay` alone: run every recorded program again, and answer for each.

FIXED: it ran, and its check passed; the record is deleted. STILL FAILING: it did not pass.
NOT APPLICABLE: it was not run, since what was recorded is not what is declared now; the
record stays, and the answer says why.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, replace
from json import dumps, loads
from typing import Any, Literal

import pytest

from conformance import declared
from conformance.contract import CLAUSES, Clause
from conformance.items import case_of
from conformance.journal.child import run_alone
from conformance.journal.recorder import Recorder
from conformance.journal.records import Failure, Record

Verdict = Literal["FIXED", "STILL FAILING", "NOT APPLICABLE"]
MARK = "kv_rerun"
PROPERTY = "kv-replay"
_DID_NOT_RUN = "its check was not collected or selected, or the session ended first"


@dataclass(frozen=True, slots=True)
class Rerun:
    """One recorded program, as one test: of which check and pool. `node` is set once that
    is collected, `reason` where it does not apply."""

    check: str
    pool: str
    replay: str
    clause: str
    crashed: bool
    node: str = ""
    reason: str = ""

    @property
    def program(self) -> tuple[str, str, str]:
        """What it is known by."""
        return self.check, self.pool, self.replay

    def answer(self, verdict: Verdict, why: str) -> str:
        told = f"{verdict} {self.check}[{self.pool}] {self.replay}"
        return f"{told} ({why})" if why else told


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """Stands where a check takes its case, when there is none."""

    reason: str


class Replay:
    """A plugin object of a session that runs recorded programs, and nothing else."""

    def __init__(self, config: pytest.Config, recorder: Recorder) -> None:
        self._config, self._recorder = config, recorder
        self._is_worker = hasattr(config, "workerinput")
        if not self._is_worker:
            recorder.sweep()
        # Workers must collect the same, so they do not look for themselves.
        given = getattr(config, "workerinput", {}).get(PROPERTY)
        self._records = _from_text(given) if given is not None else recorder.store.read()
        self._answers: dict[tuple[str, str, str], tuple[Verdict, str]] = {}
        config.addinivalue_line("markers", f"{MARK}(program): a recorded program, run again")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[PROPERTY] = dumps([asdict(record) for record in self._records])

    # -- what runs -----------------------------------------------------------------------

    def params(self, function: pytest.Item, clause: Clause) -> list[Any]:
        """The pytest parameters of the check of `clause`: one a recorded program."""
        params, seen = [], dict[str, int]()
        for rerun in _reruns(self._records):
            if rerun.check != f"test_{clause.id}":
                continue
            case, reason = self._case(rerun, clause)
            node = f"{function.nodeid}[{rerun.pool}]"
            mark = getattr(pytest.mark, MARK)(replace(rerun, node=node, reason=reason))
            seen[rerun.pool] = seen.get(rerun.pool, 0) + 1
            number = f"-{seen[rerun.pool]}" if seen[rerun.pool] > 1 else ""
            params.append(pytest.param(case, id=f"{rerun.pool}{number}", marks=mark))
        return params

    def _case(self, rerun: Rerun, clause: Clause) -> tuple[Any, str]:
        subjects = declared.subjects_of(declared.declared(self._config), clause)
        entry = next((entry for entry in subjects if entry.name == rerun.pool), None)
        if entry is None:
            reason = f"{rerun.pool!r} is no longer declared"
        else:
            case = declared.make_case(self._config, entry, clause, rerun.replay)
            reason = self._why_not(case, rerun)
            if not reason:
                return case, ""
        return NotApplicable(reason), reason

    def _why_not(self, case: Any, rerun: Rerun) -> str:
        """Why this program says nothing now; "" where it does."""
        if rerun.clause not in CLAUSES:
            return _no_clause(rerun.clause)
        broken, entry = CLAUSES[rerun.clause], case.declared
        off = declared.why_off(self._config, entry, case.clause)
        off = off or declared.why_not_judged(self._config, entry, broken)
        if off:
            return off
        for clause in (case.clause, broken):
            if clause.id in entry.known:
                return f"{clause.id} is known now: {entry.known[clause.id]}"
        try:
            geometry, _ = case.read(rerun.replay)
        except ValueError as error:
            return str(error)
        return _why_not_tried(geometry, case)

    def selects(self, item: pytest.Item) -> bool:
        return _rerun_of(item) is not None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        rerun = _rerun_of(item)
        if rerun is not None and rerun.reason:
            pytest.skip(f"NOT APPLICABLE: {rerun.reason}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        rerun = _rerun_of(pyfuncitem)
        if rerun is None or not rerun.crashed:
            return None
        crash = Failure(rerun.clause, rerun.replay, "", crashed=True)
        outcome = run_alone(self._config, rerun.node, crash, rerun.pool)
        tally = case_of(pyfuncitem).tally
        tally.programs, tally.reloads = outcome.programs, outcome.reloads
        tally.rows, tally.known = outcome.rows, outcome.known_hits
        return True

    # -- what is answered ----------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        rerun = _rerun_of(item)
        if rerun is not None and (call.when == "call" or not report.passed):
            error = call.excinfo.value if call.excinfo else None
            answer = _answer(rerun, report, error, case_of(item))
            report.user_properties.append((PROPERTY, dumps([rerun.program, answer])))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == PROPERTY:
                program, (verdict, why) = loads(str(value))
                before = self._answers.get(tuple(program))
                if before is None or before[0] != "STILL FAILING":
                    self._answers[tuple(program)] = verdict, why

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._is_worker:
            return
        self._recorder.sweep()
        crashed = {(r.check, r.pool, r.replay) for r in self._recorder.ended}
        for rerun in _reruns(self._records):
            if rerun.program not in self._answers:
                did_end = rerun.program in crashed and not rerun.crashed
                self._answers[rerun.program] = (
                    ("STILL FAILING", "its process ended")
                    if did_end
                    else ("NOT APPLICABLE", _why_gone(rerun))
                )
        fixed = {p for p, (verdict, _) in self._answers.items() if verdict == "FIXED"}
        self._recorder.store.drop(r for r in self._records if (r.check, r.pool, r.replay) in fixed)
        if self._count("STILL FAILING") and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("kv replay", sep="=")
        if not self._records:
            terminalreporter.write_line("no failure is recorded")
            return
        for rerun in _reruns(self._records):
            verdict, why = self._answers.get(rerun.program, ("NOT APPLICABLE", _DID_NOT_RUN))
            color = {"FIXED": "green", "STILL FAILING": "red"}.get(verdict, "yellow")
            terminalreporter.write_line(rerun.answer(verdict, why), **{color: True})
        counts = [
            f"{self._count(v)} {v.lower()}" for v in ("FIXED", "STILL FAILING", "NOT APPLICABLE")
        ]
        terminalreporter.write_line(", ".join(counts))

    def _count(self, verdict: Verdict) -> int:
        return sum(found == verdict for found, _ in self._answers.values())


def _rerun_of(item: pytest.Item) -> Rerun | None:
    mark = item.get_closest_marker(MARK)
    return mark.args[0] if mark is not None else None


def _reruns(records: Iterable[Record]) -> list[Rerun]:
    """Each recorded program once. One that was recorded twice runs apart if it crashed once."""
    found: dict[tuple[str, str, str], Rerun] = {}
    for r in records:
        rerun = Rerun(r.check, r.pool, r.replay, r.clause, r.crashed)
        before = found.setdefault(rerun.program, rerun)
        found[rerun.program] = replace(before, crashed=before.crashed or r.crashed)
    return list(found.values())


def _from_text(text: str) -> list[Record]:
    return [Record(**entry) for entry in loads(text)]


def _answer(
    rerun: Rerun, report: pytest.TestReport, error: BaseException | None, case: Any
) -> tuple[Verdict, str]:
    if report.failed:
        return "STILL FAILING", str(getattr(error, "how", ""))
    if report.skipped:
        return "NOT APPLICABLE", rerun.reason or str(error)
    if case is not None and case.tally.known:
        return "NOT APPLICABLE", "it meets a failure that is known now"
    return "FIXED", ""


def _why_gone(rerun: Rerun) -> str:
    clause = rerun.check.removeprefix("test_")
    return _DID_NOT_RUN if clause in CLAUSES else _no_clause(clause)


def _no_clause(clause: str) -> str:
    return f"the contract has no clause {clause!r}"


def _why_not_tried(geometry: Any, case: Any) -> str:
    """Which size of `geometry` the pool's declaration no longer allows; "" where all fit."""
    from conformance.geometry import geometries

    tried = geometries(case.pool, geometry.device)
    if geometry in tried:
        return ""
    now = {word for one in tried for word in str(one).split()}
    for word in str(geometry).split():
        if word not in now:
            return f"{word} is no longer tried for {case.name!r}"
    return f"these sizes are no longer tried together for {case.name!r}"
