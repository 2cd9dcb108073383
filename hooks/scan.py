#!/usr/bin/env python3
"""`python -m conformance scan` from this clone: nothing is installed, torch is not needed.

For pre-commit and for the GitHub action. It reads as Python of any age, to say what it needs.
"""

from __future__ import annotations

import sys
from pathlib import Path

NEEDED = (3, 11)


def main() -> int:
    """The scan's exit status; 2 where Python is too old."""
    if sys.version_info < NEEDED:
        found, needed = (".".join(map(str, v[:2])) for v in (sys.version_info, NEEDED))
        print(f"scan: needs Python {needed} or newer, {sys.executable} is {found}", file=sys.stderr)
        return 2
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from conformance.scan.command import main as scan

    return scan(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
