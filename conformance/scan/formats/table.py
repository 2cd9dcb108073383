"""What a person reads in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from conformance.scan.checked import Checked
from conformance.scan.formats.words import (
    callers,
    got_worse,
    one_line,
    relative,
    stale,
    subject,
    summary,
    visible,
    where,
)
from conformance.signatures.findings import Finding

WIDTH = 80
CALLERS = 3
"""How many callers of one finding are listed."""


def render(checked: Checked) -> str:
    """Errors, warnings, notes on a line each, stale entries of the baseline, and a line that
    counts them."""
    told = [finding for finding in checked.open if finding.severity != "note"]
    notes = [_note(finding, checked.base) for finding in checked.of("note")]
    blocks = ["\n".join(_told(checked, finding)) for finding in told]
    blocks += ["\n".join(notes)] if notes else []
    blocks += _stale(checked)
    return "\n\n".join([*blocks, summary(checked)]) + "\n"


def _told(checked: Checked, finding: Finding) -> Iterator[str]:
    worse = got_worse(checked, finding)
    return lines(finding, checked.base, f" ({worse})" if worse else "")


def lines(finding: Finding, base: Path | None, remark: str = "") -> Iterator[str]:
    """One finding: place, class and verb, sentence, callers. `remark` follows the clause."""
    clause = visible(finding.clause)
    yield f"{where(finding.place, base)}: {finding.severity} {clause}{remark}"
    yield f"  {subject(finding)}"
    yield from wrapped(one_line(finding.text))
    for does, caller in callers(finding)[:CALLERS]:
        yield f"    {does} at {where(caller, base)}"
    if len(finding.callers) > CALLERS:
        yield f"    and {len(finding.callers) - CALLERS} more"


def _note(finding: Finding, base: Path | None) -> str:
    name = visible(finding.cls.rpartition(".")[2])
    return f"{where(finding.place, base)}: note: {name}.{one_line(finding.text)}"


def wrapped(text: str, indent: str = "    ") -> list[str]:
    """The text in lines of at most `WIDTH`; a long word, such as a path, is not broken."""
    return wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _stale(checked: Checked) -> Iterator[str]:
    if checked.baseline and checked.stale:
        path = visible(relative(checked.baseline.path, checked.base)[0])
        for entry in checked.stale:
            yield "\n".join([f"{path}: stale entry", *wrapped(stale(entry))])
