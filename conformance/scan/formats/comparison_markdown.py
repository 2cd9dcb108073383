"""A comparison as a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.scan.compare import Comparison
from conformance.scan.formats.comparison_words import (
    classes,
    keyword,
    remark,
    sections,
    totals,
    versions,
)
from conformance.scan.formats.markdown import HEAD, row
from conformance.scan.formats.markup import code, details, table, text


def render(comparison: Comparison) -> str:
    """Totals, keywords that the root has gained, new findings; fixed ones folded; classes."""
    blocks = [[f"## Signature comparison: {totals(comparison)}"]]
    blocks.append([f"- {text(line)}" for line in versions(comparison)])
    blocks += _keywords(comparison)
    for title, changes, fixed in sections(comparison):
        rows = [
            [*row(change.finding, comparison.base), remark(change, fixed=fixed)]
            for change in changes
        ]
        content = table((*HEAD, "now" if fixed else "before"), rows)
        blocks += [details(title, content)] if fixed else [[f"### {title}"], content]
    for word, names in classes(comparison):
        blocks.append(details(f"{len(names)} {word} classes", [f"- {code(n)}" for n in names]))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _keywords(comparison: Comparison) -> Iterator[list[str]]:
    for gained in comparison.keywords:
        behind = [f"- {code(name)}" for name in gained.left_behind]
        yield [text(keyword(comparison, gained)), *(["", *behind] if behind else [])]
