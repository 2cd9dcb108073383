"""Scan the source of real SGLang releases, and judge what is found.

    python examples/sglang/scan_releases.py FOLDER

The wheels (7 to 40 MB each, without their dependencies) are downloaded to FOLDER and
unzipped there; nothing of them is imported. What is expected was read by hand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_releases import KEYWORD, download

PROJECT = Path(__file__).parents[2]
ROOT = "sglang.srt.mem_cache.memory_pool:KVCache"
PAIR = ("get_cpu_copy", "load_cpu_copy")


@dataclass(frozen=True, slots=True)
class Release:
    """How many classes are under the root, and (class, verb, parameter) of every error, all
    of them keywords that callers pass and an override does not accept."""

    classes: int
    errors: frozenset[tuple[str, str, str]]


def _drops(parameter: str, *classes: str) -> frozenset[tuple[str, str, str]]:
    return frozenset((cls, verb, parameter) for cls in classes for verb in PAIR)


EXPECTED = {
    # sglang issue 25828; NSA was renamed DSA after it.
    "0.5.12": Release(17, _drops("mamba_indices", "NSATokenToKVPool")),
    # The two NPU pools cannot be imported on a machine without torch_npu.
    "0.5.13": Release(
        17,
        _drops("mamba_indices", "DSATokenToKVPool", "NPUMHATokenToKVPool", "NPUMLATokenToKVPool"),
    ),
    "0.5.14": Release(20, _drops("mamba_indices", "NPUMLATokenToKVPool")),
    # Both only raise NotImplementedError; the scheduler gets TypeError before they can.
    "0.5.23": Release(
        42, _drops("req_pool_index", "UnifiedDraftKVPool", "PageInterleaveDSATokenToKVPool")
    ),
}
# A sub-pool that its owner alone reaches, and by position: notes.
PRIVATE = {("0.5.23", "MiniMaxM3Nvfp4IndexKPool")}
# Renames its first parameter, which callers pass by position: a warning, no error.
RENAMED = ("HybridLinearKVPool", "load_cpu_copy", "kv_cache_cpu")


def scan(folder: Path) -> tuple[dict[str, Any], float]:
    """The report of one scan, and how many seconds it took."""
    command = [sys.executable, "-m", "conformance", "scan", "--root", ROOT, "--format", "json"]
    environment = os.environ | {"PYTHONPATH": str(PROJECT)}
    begin = time.perf_counter()
    run = subprocess.run(
        [*command, str(folder / "sglang")], env=environment, stdout=subprocess.PIPE, check=False
    )
    report: dict[str, Any] = json.loads(run.stdout)
    return report, time.perf_counter() - begin


def named(report: dict[str, Any], severity: str, clause: str) -> set[tuple[str, str, str]]:
    """(class, verb, parameter) of each such finding."""
    return {
        (finding["class"].rpartition(".")[2], finding["verb"], finding["parameter"])
        for finding in report["findings"]
        if finding["severity"] == severity and finding["clause"] == clause
    }


def problems(release: str, report: dict[str, Any]) -> list[str]:
    """What is not as expected."""
    expected = EXPECTED[release]
    errors = named(report, "error", KEYWORD)
    others = [f for f in report["findings"] if f["severity"] == "error" and f["clause"] != KEYWORD]
    notes = {cls for cls, _, _ in named(report, "note", KEYWORD)}
    told = [f"NOT EXPECTED: {'.'.join(key)}" for key in sorted(errors - expected.errors)]
    told += [f"EXPECTED, NOT FOUND: {'.'.join(key)}" for key in sorted(expected.errors - errors)]
    told += [f"NOT EXPECTED: {other['class']}: {other['text']}" for other in others]
    if len(report["classes"]) != expected.classes:
        told.append(f"{len(report['classes'])} classes, expected {expected.classes}")
    told += [f"EXPECTED, NOT A NOTE: {c}" for r, c in PRIVATE if r == release and c not in notes]
    if RENAMED not in named(report, "warning", "override_keeps_names"):
        told.append(f"EXPECTED, NOT A WARNING: {'.'.join(RENAMED)}")
    return told


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for release in EXPECTED:
        report, seconds = scan(download(release, folder))
        told = problems(release, report)
        wrong += bool(told)
        print(f"\n---- sglang {release}: {report['files']} files, {seconds:.1f} s", flush=True)
        for cls, verb, parameter in sorted(named(report, "error", KEYWORD)):
            print(f"error: {cls}.{verb} does not accept {parameter}=, which callers pass")
        print(*told, sep="\n", end="\n" if told else "")
    print(f"\n{len(EXPECTED) - wrong} of {len(EXPECTED)} releases are as expected")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
