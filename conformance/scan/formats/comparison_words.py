"""What a comparison says in every format for people."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.scan.compare import Change, Comparison, NewKeyword, tally
from conformance.scan.formats.words import article, count, scanned, visible
from conformance.signatures.findings import SEVERITIES


def totals(comparison: Comparison) -> str:
    """`2 new errors, 1 fixed, 7 unchanged`; new warnings and notes only where there are any."""
    new = tally(comparison.findings_new)
    words = [
        count(new[severity], f"new {severity}")
        for severity in SEVERITIES
        if new[severity] or severity == "error"
    ]
    fixed, same = len(comparison.findings_fixed), comparison.unchanged
    return ", ".join([*words, f"{fixed} fixed", f"{same} unchanged"])


def versions(comparison: Comparison) -> list[str]:
    """What was scanned on each side."""
    return [f"old: {scanned(comparison.old)}", f"new: {scanned(comparison.new)}"]


def classes(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """The new, gone and moved classes, each kind under its word, where there are any."""
    moved = [f"{before} to {after}" for before, after in comparison.moved]
    kinds = [
        ("new", list(comparison.classes_new)),
        ("gone", list(comparison.classes_gone)),
        ("moved", moved),
    ]
    return [(word, [visible(name) for name in names]) for word, names in kinds if names]


def keyword(comparison: Comparison, gained: NewKeyword) -> str:
    """Which verb gained what, and how many classes did not follow."""
    root = visible(comparison.new.root)
    words = f"{visible(gained.verb)} of {root} now takes {visible(gained.name)}="
    every, behind = len(comparison.new.classes), len(gained.left_behind)
    if not behind:
        return f"{words}, and so do all classes"
    return f"{words}; {behind} of {count(every, 'class')} {'does' if behind == 1 else 'do'} not"


def remark(change: Change, *, fixed: bool) -> str:
    """What a finding was, or has become, where it is in both versions."""
    if change.other is None:
        return ""
    return f"{'now' if fixed else 'was'} {article(change.other)}"


def sections(comparison: Comparison) -> Iterable[tuple[str, tuple[Change, ...], bool]]:
    """The findings that changed: a title, the changes, and whether they are fixed."""
    for title, changes, fixed in (
        ("new findings", comparison.findings_new, False),
        ("fixed findings", comparison.findings_fixed, True),
    ):
        if changes:
            yield title, changes, fixed
