"""Run the suite on real SGLang releases, each from its own wheel, and judge what it finds.

    python examples/sglang/run_releases.py FOLDER [PYTEST OPTION ...]

The wheels (7 to 40 MB each, without their dependencies) are downloaded to FOLDER and
unzipped there. 0.5.13 must fail for the DSA pool, and for nothing else; the others pass.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
KEYWORD = "override_accepts_every_keyword"
EXPECTED: dict[str, set[tuple[str, str]]] = {
    # The pair takes no mamba_indices: sglang issue 25828, repaired by PR 27645.
    "0.5.13": {("dsa", KEYWORD), ("DSATokenToKVPool", KEYWORD)},
    "0.5.14": set(),
    "0.5.23": set(),
}


def download(release: str, folder: Path) -> Path:
    """The unzipped wheel of a release, as a folder for PYTHONPATH."""
    unzipped = folder / release
    if not unzipped.exists():
        wheels = folder / "wheels" / release
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "--dest", str(wheels), f"sglang=={release}"], check=True)
        (wheel,) = wheels.glob("*.whl")
        zipfile.ZipFile(wheel).extractall(unzipped)
    return unzipped


def accused(release: str, folder: Path, options: list[str]) -> set[tuple[str, str]]:
    """Every (pool or class, clause) that the suite finds broken in a release."""
    report = folder / f"{release}.json"
    environment = os.environ | {
        "PYTHONPATH": str(download(release, folder)),
        "OMP_NUM_THREADS": "1",
    }
    pytest = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-r", "N", f"--kv-report={report}"]
    subprocess.run([*pytest, *options], cwd=HERE, env=environment, check=False)
    outcomes = json.loads(report.read_text(encoding="utf-8"))["outcomes"]
    unexplained = {(o["member"], "") for o in outcomes if o["status"] == "failed"}
    unexplained -= {(o["member"], "") for o in outcomes if o["accused"]}
    return unexplained | {(o["member"], clause) for o in outcomes for clause in o["accused"]}


def main(folder: Path, options: list[str]) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for release, expected in EXPECTED.items():
        print(f"\n---- sglang {release}", flush=True)
        found = accused(release, folder, options)
        for member, clause in sorted(found - expected):
            print(f"NOT EXPECTED: {member} breaks {clause or 'no clause, but fails'}")
        for member, clause in sorted(expected - found):
            print(f"EXPECTED, NOT FOUND: {member} breaks {clause}")
        wrong += found != expected
    print(f"\n{len(EXPECTED) - wrong} of {len(EXPECTED)} releases are as expected")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
