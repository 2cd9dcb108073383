"""Words that several formats share: counts, places, names, and text that stays on one line."""

from __future__ import annotations

import os
from pathlib import Path

from conformance.scan.baseline import Entry
from conformance.scan.checked import Checked
from conformance.signatures.findings import SEVERITIES, Finding, Place, Scan, Severity


def count(number: int, noun: str) -> str:
    """`1 error`, `2 errors`, `2 classes`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def totals(checked: Checked) -> str:
    """`2 errors, 3 warnings, 5 notes`, and what the baseline accepts."""
    words = [count(len(checked.of(severity)), severity) for severity in SEVERITIES]
    if checked.baseline:
        worse = len(checked.worse)
        words += [f"{worse} worse than accepted"] if worse else []
        words += [f"{len(checked.accepted)} accepted", f"{len(checked.stale)} stale"]
    return ", ".join(words)


def scanned(scan: Scan) -> str:
    """`43 classes under pkg.mod.Root, 4719 files (31 read)`."""
    classes = count(len(scan.classes), "class")
    files = count(scan.files, "file")
    return f"{classes} under {visible(scan.root)}, {files} ({scan.parsed} read)"


def summary(checked: Checked) -> str:
    """What was scanned, and the totals."""
    return f"{scanned(checked.scan)}: {totals(checked)}"


def relative(path: Path, base: Path | None) -> tuple[str, bool]:
    """The path with `/`, relative to `base` where it lies below it, and whether it is."""
    if base is None:
        return path.as_posix(), not path.is_absolute()
    whole = Path(os.path.normpath(base / path))
    below = whole.is_relative_to(base)
    return (whole.relative_to(base) if below else whole).as_posix(), below


def where(place: Place, base: Path | None) -> str:
    """`path:line`, on one line."""
    return f"{visible(relative(place.path, base)[0])}:{place.line}"


def subject(finding: Finding | Entry) -> str:
    """The class and the verb; the class alone where the finding is about no verb."""
    return visible(".".join(filter(None, (finding.cls, finding.verb))))


def callers(finding: Finding) -> list[tuple[str, Place]]:
    """`passed` or `called`, `perhaps` before it where source does not decide the receiver,
    and where; those that are sure first."""
    does = "passed" if finding.parameter else "called"
    sure = [(does, place) for place in finding.callers if place not in finding.maybe]
    perhaps = [(f"perhaps {does}", place) for place in finding.callers if place in finding.maybe]
    return sure + perhaps


def got_worse(checked: Checked, finding: Finding) -> str:
    """That the baseline accepts less than this; "" where it does not."""
    before = checked.outgrown(finding)
    return f"got worse: accepted as {article(before)} only" if before else ""


def article(severity: Severity) -> str:
    """`an error`, `a warning`."""
    return f"an {severity}" if severity == "error" else f"a {severity}"


def stale(entry: Entry) -> str:
    """What to do with an entry that matches nothing."""
    return f"{visible(str(entry))} is accepted, but there is no such finding: delete the entry"


def visible(text: str) -> str:
    """The text with everything that does not print, line ends too, as an escape."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def one_line(text: str) -> str:
    """A sentence on one line."""
    return visible(" ".join(text.split()))


def default_level(level: str) -> Severity:
    """How bad a broken clause of this level is where nothing else is known."""
    return "error" if level == "required" else "warning"
