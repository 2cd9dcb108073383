"""A comparison as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.scan.compare import Change, Comparison
from conformance.scan.formats.comparison_words import (
    classes,
    keyword,
    remark,
    sections,
    totals,
    versions,
)
from conformance.scan.formats.table import lines, wrapped
from conformance.scan.formats.words import visible


def render(comparison: Comparison) -> str:
    """Classes, keywords that the root has gained, findings that changed, totals."""
    blocks = [f"{word} classes\n" + _indented(names) for word, names in classes(comparison)]
    blocks += _keywords(comparison)
    for title, changes, fixed in sections(comparison):
        blocks.append(title)
        blocks += [_change(comparison, change, fixed) for change in changes]
    return "\n\n".join([*blocks, "\n".join([*versions(comparison), totals(comparison)])]) + "\n"


def _keywords(comparison: Comparison) -> Iterator[str]:
    for gained in comparison.keywords:
        behind = [visible(name) for name in gained.left_behind]
        yield "\n".join(
            [*wrapped(keyword(comparison, gained), ""), *filter(None, [_indented(behind)])]
        )


def _change(comparison: Comparison, change: Change, fixed: bool) -> str:
    said = remark(change, fixed=fixed)
    return "\n".join(lines(change.finding, comparison.base, f" ({said})" if said else ""))


def _indented(names: list[str]) -> str:
    return "\n".join(f"  {name}" for name in names)
