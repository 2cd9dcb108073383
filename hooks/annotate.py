"""What failed in pytest's JUnit file: remarks on a pull request, a section of the job's summary.

`annotate.py JUNIT_FILE SUMMARY_FILE`, for the GitHub action.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from conformance.scan.formats.github import command
from conformance.scan.formats.markup import code, table, text

REMARKS = 10
"""GitHub shows no more of one step."""


def main(junit: Path, summary: Path) -> None:
    """Print a command for each of the first failures; append all of them to the summary."""
    found = [_outcome(case) for case in ElementTree.parse(junit).iter("testcase")]
    bad = [(name, message) for name, kind, message in found if kind in ("failed", "error")]
    for name, message in bad[:REMARKS]:
        print(command("error", message, title=name))
    kinds = [kind for _, kind, _ in found]
    counts = [(kinds.count(kind), kind) for kind in ("failed", "error", "passed", "skipped")]
    totals = ", ".join(f"{number} {kind}" for number, kind in counts if number)
    lines = [f"## Conformance suite: {totals or 'nothing ran'}", ""]
    if bad:
        rows = [[code(name), text(message.partition("\n")[0])] for name, message in bad]
        lines += [*table(("check", "what"), rows), ""]
    with summary.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines))


def _outcome(case: ElementTree.Element) -> tuple[str, str, str]:
    """Name, `passed` or what else happened, and pytest's message."""
    for tag, kind in (("failure", "failed"), ("error", "error"), ("skipped", "skipped")):
        if (child := case.find(tag)) is not None:
            return case.get("name", ""), kind, child.get("message", "")
    return case.get("name", ""), "passed", ""


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
