"""`python -m conformance`: run the suite over every pool that installed packages declare.

`scan` and `clauses` need neither torch nor hypothesis nor pytest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

USAGE = """\
usage: python -m conformance [PYTEST OPTION ...]   run the suite on the installed pools
       python -m conformance clauses               print the contract
       python -m conformance scan --root MODULE:CLASS PATH ...
                                                   compare signatures in source, importing nothing

A run is repeatable: it passes --hypothesis-seed=0 unless you give another seed.
It runs on all processors; -n 0 keeps it in this one.
Useful options: -k NAME, --kv-device=cuda, --kv-report=FILE.json, --kv-replay
What failed is kept in .kv_cache, in the folder that it is run from.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: pytest's own, or 0 after printing."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["clauses"] and len(words) == 1:
        print(contract_text())
        return 0
    if words[:1] == ["scan"]:
        from conformance.scan.command import main as scan

        return scan(words[1:])
    if words and words[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    return _run(words)


def contract_text() -> str:
    """Every clause: name, level and version, sentence, and where the rule comes from."""
    from conformance.contract import CLAUSES, VERSION

    lines = [f"contract version {VERSION}, {len(CLAUSES)} clauses"]
    for clause in CLAUSES.values():
        lines += [
            "",
            f"{clause.id}  [{clause.subject}, {clause.level}, since {clause.since}]",
            f"  {clause.sentence}",
            f"  from: {clause.source}",
        ]
    return "\n".join(lines)


def _run(options: list[str]) -> int:
    import pytest

    suite = str(Path(__file__).parent / "suite")
    if not any(option.startswith("--hypothesis-seed") for option in options):
        options = ["--hypothesis-seed=0", *options]
    if not any(option.startswith(_ALONE) for option in options):
        options = ["-n", "auto", "--dist", "worksteal", *options]
    alone = ["--noconftest", "-c", os.devnull, "--rootdir", suite, *_cache()]
    return int(
        pytest.main(
            [*alone, "-p", "conformance.entry_points", "-q", "--disable-warnings", suite, *options]
        )
    )


_ALONE = ("-n", "--numprocesses", "--pdb", "--kv-replay", "--collect-only", "-s", "no:xdist")
"""Options beside which the run is not spread over processes."""


def _cache() -> list[str]:
    """In the folder that this is run from; the suite's own may belong to another user."""
    folder = Path.cwd() / ".kv_cache"
    if os.access(folder if folder.exists() else folder.parent, os.W_OK):
        return ["-o", f"cache_dir={folder}"]
    return ["-p", "no:cacheprovider"]


if __name__ == "__main__":
    sys.exit(main())
