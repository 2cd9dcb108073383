"""A comment on a pull request, or the summary of a job."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from conformance.scan.baseline import Entry
from conformance.scan.checked import Checked
from conformance.scan.formats.markup import code, details, table, text
from conformance.scan.formats.words import (
    callers,
    count,
    got_worse,
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
    blocks.append(_findings(checked, serious) if serious else ["No errors and no warnings."])
    if checked.baseline and checked.stale:
        blocks.append(_stale(relative(checked.baseline.path, base)[0], checked.stale))
    if notes := checked.of("note"):
        blocks.append(details(count(len(notes), "note"), _findings(checked, notes)))
    if checked.accepted:
        rows = [[*row(finding, base), text(reason)] for finding, reason in checked.accepted]
        content = table((*HEAD, "reason"), rows)
        blocks.append(details(f"{len(checked.accepted)} accepted", content))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _findings(checked: Checked, found: Iterable[Finding]) -> list[str]:
    rows = [row(finding, checked.base, got_worse(checked, finding)) for finding in found]
    return table(HEAD, rows)


def row(finding: Finding, base: Path | None, remark: str = "") -> list[str]:
    """The cells of one finding; `remark` follows the sentence."""
    told = [text(finding.text), *([remark] if remark else []), *_callers(finding, base)]
    return [
        finding.severity,
        code(finding.clause),
        code(subject(finding)),
        "<br>".join(told),
        code(where(finding.place, base)),
    ]


def _callers(finding: Finding, base: Path | None) -> list[str]:
    every = callers(finding)
    shown = [f"{does} at {code(where(place, base))}" for does, place in every[:CALLERS]]
    more = len(every) - CALLERS
    return [*shown, f"and {more} more"] if more > 0 else shown


def _stale(path: str, entries: Iterable[Entry]) -> list[str]:
    return [f"Stale in {code(path)}:", "", *(f"- {text(stale(entry))}" for entry in entries)]
