"""The words of `conformance scan`: read, and checked as far as that needs no scan."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import NoReturn

from conformance.pool import Family
from conformance.scan.formats import COMPARISON_FORMATS, FORMATS
from conformance.signatures.findings import ScanError

VERBS: tuple[str, ...] = signature(Family).parameters["verbs"].default

_DESCRIPTION = """\
Read the source of every class under a root class and report the overrides whose
signatures have drifted. Nothing is imported: the engine, its dependencies and
torch may be absent.
"""

_EPILOG = """\
exit status: 0 no error that the baseline does not accept; 1 such errors, or
entries of the baseline that match nothing any more; 2 bad input, or no class
under the root.
With --compare: 0 no new error; 1 new errors; 2 bad input.

examples:
  python -m conformance scan --root pkg.pools:Pool src/pkg
  python -m conformance scan --root pkg.pools:Pool pkg --format sarif \\
      --output scan.sarif
  python -m conformance scan --root pkg.pools:Pool pkg \\
      --write-baseline baseline.json --reason "found when the scan was added"
  python -m conformance scan --root pkg.pools:Pool pkg --baseline baseline.json
  python -m conformance scan --root pkg.pools:Pool --compare ../released/pkg pkg
"""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What was asked for. `compare` is the old and the new tree; then `trees` is empty.
    `demanded` are the verbs that the root must have: those that were given."""

    root: str
    trees: tuple[str, ...]
    verbs: tuple[str, ...]
    demanded: tuple[str, ...]
    format: str
    output: Path | None
    baseline: Path | None
    write_baseline: Path | None
    reason: str | None
    compare: tuple[str, str] | None


def read(words: Sequence[str]) -> Arguments:
    """Raises `ScanError`; `--help` prints and raises `SystemExit`."""
    end = list(words).index("--") if "--" in words else len(words)
    given = _parser().parse_intermixed_args(words[:end])
    arguments = Arguments(
        given.root,
        (*given.trees, *words[end + 1 :]),  # argparse would take them for options again
        VERBS if given.verbs is None else _verbs(given.verbs),
        () if given.verbs is None else _verbs(given.verbs),
        given.format,
        given.output,
        given.baseline,
        given.write_baseline,
        given.reason,
        tuple(given.compare) if given.compare else None,
    )
    _check_trees(arguments)
    _check_files(arguments)
    return arguments


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ScanError(f"{message}; --help explains the options")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m conformance scan",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "trees", nargs="*", metavar="PATH_OR_PACKAGE", help="a folder, a file or a package name"
    )
    parser.add_argument(
        "--root", required=True, metavar="MODULE:CLASS", help="the root class of the family"
    )
    parser.add_argument(
        "--verbs",
        metavar="A,B,C",
        help="offload, reload, then other methods to compare, all of which the root has "
        f"(default: {','.join(VERBS)}, the last where the root has it)",
    )
    parser.add_argument(
        "--format",
        choices=list(FORMATS),
        default="table",
        help="%(choices)s (default: %(default)s)",
        metavar="FORMAT",
    )
    _add_files(parser)
    parser.add_argument(
        "--compare",
        nargs=2,
        metavar=("OLD_PATH", "NEW_PATH"),
        help=f"scan two versions, tell what changed ({', '.join(COMPARISON_FORMATS)})",
    )
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write there, and print the summary only"
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="accept the errors and warnings that it lists"
    )
    parser.add_argument(
        "--write-baseline",
        type=Path,
        metavar="FILE",
        help="list the errors and warnings of today; entries that are there keep their reasons",
    )
    parser.add_argument(
        "--reason", metavar="TEXT", help="why --write-baseline accepts what was not listed yet"
    )


def _verbs(text: str) -> tuple[str, ...]:
    verbs = tuple(verb.strip() for verb in text.split(","))
    for verb in verbs:
        if not verb.isidentifier():
            raise ScanError(
                f"--verbs: {verb!r} is no method name; separate names by commas, "
                f"e.g. {','.join(VERBS)}"
            )
    if len(set(verbs)) < len(verbs):
        raise ScanError(f"--verbs: {text} names a verb twice")
    return verbs


def _check_trees(arguments: Arguments) -> None:
    if arguments.compare and arguments.trees:
        raise ScanError(
            f"--compare takes the two trees itself: leave out {', '.join(arguments.trees)}"
        )
    if not arguments.compare and not arguments.trees:
        raise ScanError("what is to be scanned? Give at least one path or package")
    if arguments.compare and arguments.format not in COMPARISON_FORMATS:
        raise ScanError(
            f"--compare has no format {arguments.format}; "
            f"it must be one of {', '.join(COMPARISON_FORMATS)}"
        )


def _check_files(arguments: Arguments) -> None:
    baselines = [path for path in (arguments.baseline, arguments.write_baseline) if path]
    if arguments.compare and baselines:
        raise ScanError("--compare uses no baseline: leave out --baseline and --write-baseline")
    if len(baselines) == 2:
        raise ScanError("give --baseline or --write-baseline, not both")
    if arguments.write_baseline and not (arguments.reason or "").strip():
        raise ScanError("--write-baseline needs --reason TEXT: why these findings are accepted")
    if arguments.reason is not None and not arguments.write_baseline:
        raise ScanError("--reason is for --write-baseline")
    if arguments.output and arguments.output.resolve() in [path.resolve() for path in baselines]:
        raise ScanError(f"--output {arguments.output} would overwrite the baseline")
