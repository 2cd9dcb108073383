"""What a run found, as data: one outcome per check, gathered into rows per pool."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, field
from json import dumps, loads
from typing import Any, ClassVar, Literal

import pytest

from conformance.journal.records import Failure

Status = Literal["passed", "failed", "known"]
Subject = Literal["pool", "allocator", "host tier", "family"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check: of which pool, allocator, host tier or family, under which clause, what it did and
    found.

    `accused` are the clauses that were found broken, `findings` the programs that show what
    failed, as replay texts; `rows` counts token rows that were reloaded and compared, `ids`
    those that an allocator handed out, `known_hits` the times a known failure was met on the
    way. `undefined` are the clauses that its declaration switches off, with their reasons.
    """

    PROPERTY: ClassVar[str] = "kv"

    subject: Subject
    name: str
    member: str
    clause: str
    status: Status
    accused: tuple[str, ...]
    programs: int
    reloads: int
    rows: int
    known_hits: int
    ids: int
    lacks: tuple[str, ...]
    undefined: dict[str, str]
    exempt: bool
    seconds: float
    message: str
    findings: tuple[Failure, ...] = ()

    @classmethod
    def of(cls, case: Any, report: pytest.TestReport, failures: Iterable[Failure]) -> Outcome:
        """The outcome of the check of `case` that `report` tells."""
        shown = tuple(failures) if report.failed else ()
        status: Status = "known" if hasattr(report, "wasxfail") else "passed"
        if report.failed:
            status = "failed"
        runs = hasattr(case, "pool")
        subject: Subject = "family"
        if runs:
            subject = case.subject
        programs, reloads, rows, known_hits, ids = astuple(case.tally) if runs else (0,) * 5
        return cls(
            subject,
            case.owner,
            case.name,
            case.clause.id,
            status,
            tuple(dict.fromkeys(failure.clause for failure in shown if not failure.crashed)),
            programs,
            reloads,
            rows,
            known_hits,
            ids,
            tuple(sorted(case.declared.lacks)) if runs else (),
            dict(case.declared.undefined) if runs else {},
            not runs and case.is_exempt,
            report.duration,
            str(getattr(report, "wasxfail", "")) or (report.longreprtext if report.failed else ""),
            tuple(failure for failure in shown if failure.replay),
        )

    def to_json(self) -> str:
        return dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in loads(text).items()
        }
        findings = tuple(Failure(**finding) for finding in values.pop("findings"))
        return cls(**values, findings=findings)


@dataclass(slots=True)
class Report:
    """Every outcome of a run, in the order in which they came in."""

    outcomes: list[Outcome] = field(default_factory=list)

    def of(self, subject: Subject) -> dict[str, list[Outcome]]:
        """The outcomes of each pool, allocator, host tier or family, by name."""
        grouped: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            if outcome.subject == subject:
                grouped.setdefault(outcome.name, []).append(outcome)
        return dict(sorted(grouped.items()))
