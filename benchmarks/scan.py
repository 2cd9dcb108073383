"""The scan beside a plain load of the same tree by griffe, in alternating child processes.

    python benchmarks/scan.py FOLDER [--rounds 3] [--root MODULE:CLASS] [--narrow SUBFOLDER]

FOLDER is an unzipped SGLang (`tox -e scan-speed` downloads one). Griffe does not look into
folders without an `__init__.py` below a package, so it is given a copy of the tree that has
them; the scan reads that copy too where the two are compared. Cold means that no file of the
tree is in the page cache. Memory is the most that a scan had.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = "sglang.srt.mem_cache.memory_pool:KVCache"
GRIFFE = (
    "import sys, griffe, logging; logging.disable(logging.CRITICAL); "
    "griffe.load(sys.argv[1], search_paths=[sys.argv[2]], allow_inspection=False)"
)
LIMITS = {"warm": 3.0, "cold": 8.0, "narrow": 1.0}
MEGABYTES, TARGET = 500, 5.0


def seconds(command: Sequence[str]) -> float:
    """How long a process takes, its start included; it may find errors, but not fail."""
    begin = time.perf_counter()
    run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if run.returncode not in (0, 1) or run.stderr:
        sys.exit(f"{command}: {run.stderr.decode()[-2000:]}")
    return time.perf_counter() - begin


def forget(tree: Path) -> None:
    """Drop the tree's files from the page cache."""
    os.sync()
    for path in tree.rglob("*.py"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def whole(tree: Path, folder: Path) -> Path:
    """The tree's Python files below `folder`, with an `__init__.py` in every folder."""
    copy = folder / tree.name
    for path in tree.rglob("*.py"):
        there = copy / path.relative_to(tree)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)
    for path in [copy, *copy.rglob("*")]:
        if path.is_dir():
            (path / "__init__.py").touch()
    return copy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--root", default=ROOT)
    parser.add_argument("--narrow", default="srt/mem_cache")
    options = parser.parse_args()
    tree: Path = options.tree.resolve()
    scan = [sys.executable, "-m", "conformance", "scan", "--root", options.root]
    times: dict[str, list[float]] = {name: [] for name in ("warm", "narrow", "cold")}
    compared: dict[str, list[float]] = {"scan": [], "griffe": []}
    seconds([*scan, str(tree)])
    for _ in range(options.rounds):
        times["warm"].append(seconds([*scan, str(tree)]))
        times["narrow"].append(seconds([*scan, str(tree / options.narrow)]))
        forget(tree)
        times["cold"].append(seconds([*scan, str(tree)]))
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        copy = whole(tree, Path(folder))
        griffe = [sys.executable, "-c", GRIFFE, copy.name, folder]
        for _ in range(options.rounds):
            compared["griffe"].append(seconds(griffe))
            compared["scan"].append(seconds([*scan, str(copy)]))
    for name, every in times.items():
        print(f"{name:6} {statistics.median(every):6.2f} s (limit {LIMITS[name]:.0f} s)")
    print(f"memory {most:6.0f} MB (limit {MEGABYTES} MB)")
    one, other = (statistics.median(compared[name]) for name in ("scan", "griffe"))
    ratio = other / one
    print(f"griffe {other:6.2f} s, the scan {one:.2f} s: ratio {ratio:.1f} (target {TARGET:.0f})")


if __name__ == "__main__":
    main()
