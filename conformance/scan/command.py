"""`conformance scan`: scan, hold against the baseline, print or write, and judge."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.scan import baseline as baselines
from conformance.scan.arguments import Arguments, read
from conformance.scan.asked import refuse_empty, refuse_unknown_verbs
from conformance.scan.baseline import Baseline
from conformance.scan.checked import Checked
from conformance.scan.compare import compare
from conformance.scan.files import write_whole
from conformance.scan.formats import COMPARISON_FORMATS, FORMATS
from conformance.scan.formats.comparison_words import totals
from conformance.scan.formats.words import summary
from conformance.signatures.findings import Scan, ScanError

PASSED, FAILED, BAD_INPUT = 0, 1, 2


def main(words: Sequence[str]) -> int:
    """Exit status: 0 passed, 1 errors or stale entries, 2 bad input, told on stderr."""
    try:
        arguments = read(words)
        return _compare(arguments, *arguments.compare) if arguments.compare else _scan(arguments)
    except ScanError as error:
        reason = str(error)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    print(_encodable(f"scan: {reason}", sys.stderr.encoding), file=sys.stderr)
    return BAD_INPUT


def _scan(arguments: Arguments) -> int:
    before = _baseline(arguments)
    scan = _scanned(arguments, arguments.trees)
    refuse_unknown_verbs(arguments, [scan], arguments.trees)
    after = before
    if before and arguments.write_baseline:
        after = before.refreshed(scan, arguments.reason or "")
    checked = Checked(scan, after, Path.cwd())
    if not checked.of("error"):  # which say more
        refuse_empty([scan], arguments.trees)
    text = FORMATS[arguments.format](checked)
    if arguments.output:
        write_whole(arguments.output, text)
    if after and arguments.write_baseline:
        after.write()
    _print(summary(checked) + "\n" if arguments.output else text)
    return FAILED if checked.failed else PASSED


def _compare(arguments: Arguments, old: str, new: str) -> int:
    before, after = _scanned(arguments, [old]), _scanned(arguments, [new])
    refuse_unknown_verbs(arguments, [before, after], [new])
    refuse_empty([before, after], [old, new])
    comparison = compare(before, after, Path.cwd())
    text = COMPARISON_FORMATS[arguments.format](comparison)
    if arguments.output:
        write_whole(arguments.output, text)
    _print(totals(comparison) + "\n" if arguments.output else text)
    return FAILED if comparison.failed else PASSED


def _scanned(arguments: Arguments, trees: Sequence[str]) -> Scan:
    from conformance.signatures.source import scan

    return scan(arguments.root, trees, arguments.verbs)


def _baseline(arguments: Arguments) -> Baseline | None:
    if arguments.baseline:
        return baselines.read(arguments.baseline)
    if arguments.write_baseline:
        return baselines.read_or_empty(arguments.write_baseline)
    return None


def _print(text: str) -> None:
    try:
        print(_encodable(text, sys.stdout.encoding), end="", flush=True)
    except BrokenPipeError:  # whoever reads has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _encodable(text: str, encoding: str | None) -> str:
    """With escapes for what the terminal cannot show."""
    encoding = encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
