"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.report import Outcome, Report
from conformance.report.header import environment

_POOL_HEAD = ("pool", "clauses", "programs", "reloads", "rows moved", "known", "lacks", "failed")
_FAMILY_HEAD = ("family", "classes", "checks", "exempt", "known", "failed")


def write(out: pytest.TerminalReporter, report: Report, config: pytest.Config) -> None:
    """Print one row per pool and per family, then the clauses that were found broken."""
    made_with = environment(config)
    out.section("kv conformance", sep="=")
    out.write_line(", ".join(f"{name} {value}" for name, value in made_with.items()))
    pools, families = report.of("pool"), report.of("family")
    if pools:
        _table(out, _POOL_HEAD, [_pool_row(name, of) for name, of in pools.items()])
    if families:
        _table(out, _FAMILY_HEAD, [_family_row(name, of) for name, of in families.items()])
    for outcomes in (*pools.values(), *families.values()):
        _broken(out, outcomes)


def _pool_row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    passed = sum(o.status == "passed" for o in outcomes)
    return (
        name,
        f"{passed}/{len(outcomes)}",
        str(sum(o.programs for o in outcomes)),
        str(sum(o.reloads for o in outcomes)),
        str(sum(o.rows for o in outcomes)),
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
