"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from conformance.report import Outcome, Report, Subject
from conformance.report.header import environment

Row = Callable[[str, Sequence[Outcome]], tuple[str, ...]]

_POOL_HEAD = ("pool", "clauses", "programs", "reloads", "rows moved", "known", "lacks", "failed")
_ALLOCATOR_HEAD = (
    "allocator", "clauses", "programs", "reloads", "ids handed out", "known", "lacks", "failed"
)  # fmt: skip
_TIER_HEAD = (
    "host tier", "clauses", "programs", "loads", "rows moved", "known", "lacks", "failed"
)  # fmt: skip
_FAMILY_HEAD = ("family", "classes", "checks", "exempt", "known", "failed")


def write(out: pytest.TerminalReporter, report: Report, config: pytest.Config) -> None:
    """Print one row per pool, allocator, host tier and family, then what was found broken."""
    made_with = environment(config)
    out.section("kv conformance", sep="=")
    out.write_line(", ".join(f"{name} {value}" for name, value in made_with.items()))
    every: list[list[Outcome]] = []
    for subject, head, row in _TABLES:
        found = report.of(subject)
        if found:
            _table(out, head, [row(name, of) for name, of in found.items()])
            every += found.values()
    for outcomes in every:
        _undefined(out, outcomes)
    for outcomes in every:
        _broken(out, outcomes)


def _pool_row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    return _row(name, outcomes, sum(o.rows for o in outcomes))


def _allocator_row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    return _row(name, outcomes, sum(o.ids for o in outcomes))


def _row(name: str, outcomes: Sequence[Outcome], moved: int) -> tuple[str, ...]:
    passed = sum(o.status == "passed" for o in outcomes)
    return (
        name,
        f"{passed}/{len(outcomes)}",
        str(sum(o.programs for o in outcomes)),
        str(sum(o.reloads for o in outcomes)),
        str(moved),
        _count(outcomes, "known"),
        ",".join(outcomes[0].lacks) or "-",
        _count(outcomes, "failed"),
    )


def _family_row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    members = {o.member for o in outcomes}
    passed = sum(o.status == "passed" for o in outcomes)
    return (
        name,
        str(len(members)),
        f"{passed}/{len(outcomes)}",
        str(len({o.member for o in outcomes if o.exempt}) or "-"),
        _count(outcomes, "known"),
        _count(outcomes, "failed"),
    )


_TABLES: tuple[tuple[Subject, tuple[str, ...], Row], ...] = (
    ("pool", _POOL_HEAD, _pool_row),
    ("allocator", _ALLOCATOR_HEAD, _allocator_row),
    ("host tier", _TIER_HEAD, _pool_row),
    ("family", _FAMILY_HEAD, _family_row),
)


def _undefined(out: pytest.TerminalReporter, outcomes: Sequence[Outcome]) -> None:
    """Each clause that is switched off, and why."""
    for clause, reason in outcomes[0].undefined.items():
        out.write_line(f"{outcomes[0].name}: {clause} is undefined ({reason})")


def _count(outcomes: Sequence[Outcome], status: str) -> str:
    return str(sum(o.status == status for o in outcomes) or "-")


def _table(
    out: pytest.TerminalReporter, head: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    out.write_line("")
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        out.write_line("  ".join(cells), red=row is not head and row[-1] != "-")


def _broken(out: pytest.TerminalReporter, outcomes: Sequence[Outcome]) -> None:
    """Each broken clause once per pool or class, and how many checks met it."""
    met: dict[tuple[str, str], int] = {}
    for outcome in outcomes:
        for clause in outcome.accused:
            key = (outcome.member, clause)
            met[key] = met.get(key, 0) + 1
    for (member, clause), checks in met.items():
        seen = f"seen by {checks} checks" if checks > 1 else "seen by 1 check"
        out.write_line(f"{member} breaks {clause} ({seen})", red=True)
