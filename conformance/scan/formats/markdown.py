"""A comment on a pull request, or the summary of a job."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from conformance.scan.baseline import Entry
from conformance.scan.checked import Checked
from conformance.scan.formats.markup import code, details, table, text
from conformance.scan.formats.words import (
    count,
    how,
    relative,
    scanned,
    stale,
    subject,
    totals,
    where,
)
from conformance.signatures.findings import Finding

CALLERS = 3
HEAD = ("severity", "clause", "method", "what", "where")


def render(checked: Checked) -> str:
    """Totals, a table of errors and warnings, stale entries; notes and accepted ones folded."""
    base = checked.base
    serious = [*checked.of("error"), *checked.of("warning")]
    blocks = [[f"## Signature scan: {totals(checked)}"], [text(f"{scanned(checked.scan)}.")]]
    blocks.append(findings(serious, base) if serious else ["No errors and no warnings."])
    if checked.baseline and checked.stale:
        blocks.append(_stale(relative(checked.baseline.path, base)[0], checked.stale))
    if notes := checked.of("note"):
        blocks.append(details(count(len(notes), "note"), findings(notes, base)))
    if checked.accepted:
        rows = [[*row(finding, base), text(reason)] for finding, reason in checked.accepted]
        content = table((*HEAD, "reason"), rows)
        blocks.append(details(f"{len(checked.accepted)} accepted", content))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def findings(found: Iterable[Finding], base: Path | None) -> list[str]:
    """A table of findings."""
    return table(HEAD, [row(finding, base) for finding in found])


def row(finding: Finding, base: Path | None) -> list[str]:
    """The cells of one finding."""
    return [
        finding.severity,
        code(finding.clause),
        code(subject(finding)),
        "<br>".join([text(finding.text), *_callers(finding, base)]),
        code(where(finding.place, base)),
    ]


def _callers(finding: Finding, base: Path | None) -> list[str]:
    shown = [f"{how(finding)} {code(where(at, base))}" for at in finding.callers[:CALLERS]]
    more = len(finding.callers) - CALLERS
    return [*shown, f"and {more} more"] if more > 0 else shown


def _stale(path: str, entries: Iterable[Entry]) -> list[str]:
    return [f"Stale in {code(path)}:", "", *(f"- {text(stale(entry))}" for entry in entries)]
