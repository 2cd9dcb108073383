"""What the wheel installs: two packages and nothing else. Run by `tox -e build`."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

EXPECTED = {"conformance", "reference_pools"}


def top_level(wheel: Path) -> set[str]:
    """Names at the top of a wheel, its own metadata aside."""
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    return {name for name in names if not name.endswith(".dist-info")}


def main(dist: Path) -> int:
    (wheel,) = dist.glob("*.whl")
    found = top_level(wheel)
    print(f"{wheel.name} installs {', '.join(sorted(found))}")
    return 0 if found == EXPECTED else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
