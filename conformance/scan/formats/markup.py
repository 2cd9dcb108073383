"""Names and sentences in GitHub's Markdown, such that nothing in them is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from conformance.scan.formats.words import one_line, visible

_MARKUP = r"[&<>|`*\[\]\\~$]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])"
_REFERENCE = r"@|#(?=\d)"
"""What would call a person, or link an issue."""

_IN_TEXT = re.compile(f"{_MARKUP}|{_REFERENCE}")
_IN_CODE = re.compile(_MARKUP)


def text(sentence: str) -> str:
    """A sentence, also in a cell of a table."""
    return _IN_TEXT.sub(_as_entity, one_line(sentence))


def code(name: str) -> str:
    """A name or a path, as code; backticks cannot hold every name."""
    return f"<code>{_IN_CODE.sub(_as_entity, visible(name))}</code>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table; cells are markup already."""
    every = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cells)} |" for cells in every]


def details(title: str, content: Sequence[str]) -> list[str]:
    """A section that is folded until it is clicked."""
    return ["<details>", f"<summary>{title}</summary>", "", *content, "", "</details>"]


def _as_entity(found: re.Match[str]) -> str:
    if found[0] in "@#":
        return f"{found[0]}&#8203;"  # a space of no width
    return f"&#{ord(found[0])};"
