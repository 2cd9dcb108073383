"""What changed between two versions of a source tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from pathlib import Path

from conformance.scan.baseline import Key
from conformance.signatures.findings import SEVERITIES, Finding, Scan, Severity


@dataclass(frozen=True, slots=True)
class Change:
    """A finding that is new or fixed. `other` is its severity in the other version, where it
    is in both: a note that became an error is a new error."""

    finding: Finding
    other: Severity | None = None


@dataclass(frozen=True, slots=True)
class NewKeyword:
    """A parameter that the root's verb has gained, and the classes that do not accept it."""

    verb: str
    name: str
    left_behind: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two scans, and what differs. `moved` pairs the old with the new dotted name of a class.

    Paths below `base` are shown relative to it, others absolute.
    """

    old: Scan
    new: Scan
    classes_new: tuple[str, ...]
    classes_gone: tuple[str, ...]
    moved: tuple[tuple[str, str], ...]
    findings_new: tuple[Change, ...]
    findings_fixed: tuple[Change, ...]
    unchanged: int
    keywords: tuple[NewKeyword, ...]
    base: Path | None = None

    @property
    def failed(self) -> bool:
        """Whether there is a new error."""
        return any(change.finding.severity == "error" for change in self.findings_new)


def compare(old: Scan, new: Scan, base: Path | None = None) -> Comparison:
    """Compare two scans of one family. A finding of a class that moved is the same finding."""
    gone = [name for name in old.classes if name not in new.classes]
    added = [name for name in new.classes if name not in old.classes]
    moved = dict(_moved(gone, added))
    renamed = moved | {old.root: new.root}
    before = _worst(old, renamed)
    after = _worst(new, {})
    return Comparison(
        old,
        new,
        tuple(sorted(set(added) - set(moved.values()))),
        tuple(sorted(set(gone) - set(moved))),
        tuple(sorted(moved.items())),
        tuple(_worse(new, {}, before)),
        tuple(_worse(old, renamed, after)),
        sum(before.get(key) == severity for key, severity in after.items()),
        tuple(_keywords(old, new)),
        base,
    )


def _moved(gone: Iterable[str], added: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each class that is gone with the one new class of its simple name, if both are alone."""
    left, came = _by_simple_name(gone), _by_simple_name(added)
    for name, dotted in left.items():
        if len(dotted) == 1 and len(came.get(name, ())) == 1:
            yield dotted[0], came[name][0]


def _by_simple_name(classes: Iterable[str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for dotted in classes:
        grouped.setdefault(dotted.rpartition(".")[2], []).append(dotted)
    return grouped


def _key(finding: Finding, renamed: Mapping[str, str]) -> Key:
    clause, cls, verb, parameter = finding.key
    return clause, renamed.get(cls, cls), verb, parameter


def _worst(scan: Scan, renamed: Mapping[str, str]) -> dict[Key, Severity]:
    """The severity of each key; the worst, where two findings have one key."""
    worst: dict[Key, Severity] = {}
    for severity in reversed(SEVERITIES):
        worst |= {_key(finding, renamed): severity for finding in scan.of(severity)}
    return worst


def _worse(
    scan: Scan, renamed: Mapping[str, str], there: Mapping[Key, Severity]
) -> Iterator[Change]:
    """The findings of `scan` that are not `there`, or are there with a lower severity."""
    for place, severity in enumerate(SEVERITIES):
        for finding in scan.of(severity):
            other = there.get(_key(finding, renamed))
            if other is None or SEVERITIES.index(other) > place:
                yield Change(finding, other)


def _keywords(old: Scan, new: Scan) -> Iterator[NewKeyword]:
    before, after = old.methods.get(old.root, {}), new.methods.get(new.root, {})
    for verb in new.verbs:
        if verb in before and verb in after:
            for name in after[verb].parameters:
                if _accepts(after[verb], name) and name not in before[verb].parameters:
                    yield NewKeyword(verb, name, tuple(_without(new, verb, name)))


def _without(scan: Scan, verb: str, name: str) -> Iterator[str]:
    for cls in scan.classes:
        signature = scan.methods.get(cls, {}).get(verb)
        if cls != scan.root and signature is not None and not _takes(signature, name):
            yield cls


def _accepts(signature: Signature, name: str) -> bool:
    """Whether it has a parameter of this name that can be passed by keyword."""
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return name in signature.parameters and signature.parameters[name].kind in kinds


def _takes(signature: Signature, name: str) -> bool:
    """Whether a call may pass this keyword."""
    any_keyword = any(p.kind is Parameter.VAR_KEYWORD for p in signature.parameters.values())
    return any_keyword or _accepts(signature, name)


def tally(changes: Iterable[Change]) -> Counter[Severity]:
    """How many findings there are of each severity."""
    return Counter(change.finding.severity for change in changes)
