"""Findings that are accepted, each with its reason, in a file beside the code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.scan.files import write_whole
from conformance.signatures.findings import SEVERITIES, Finding, Scan, ScanError, Severity

VERSION = 1
"""The version of this format; it changes when a field is removed or changes its meaning."""

Key = tuple[str, str, str, str]

_KEYS = ("clause", "class", "verb", "parameter", "severity", "reason")
ACCEPTABLE: tuple[Severity, ...] = ("error", "warning")
"""The worst first. Notes need no entry."""

_FILE = f'{{"version": {VERSION}, "findings": [...]}}'


class BaselineError(ScanError):
    """The file is no baseline; the message names the file, the entry and what would be right."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One accepted finding, by its key, how bad it may be, and why it is accepted."""

    clause: str
    cls: str
    verb: str
    parameter: str
    severity: Severity
    reason: str

    @property
    def key(self) -> Key:
        return self.clause, self.cls, self.verb, self.parameter

    def covers(self, severity: Severity) -> bool:
        """Whether a finding of this severity is no worse than what was accepted."""
        return SEVERITIES.index(self.severity) <= SEVERITIES.index(severity)

    def values(self) -> dict[str, str]:
        """The entry as it is in the file."""
        return dict(zip(_KEYS, (*self.key, self.severity, self.reason), strict=True))

    def __str__(self) -> str:
        about = f" ({self.parameter})" if self.parameter else ""
        return f"{self.clause} of {'.'.join(filter(None, (self.cls, self.verb)))}{about}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entries of one file. Notes need no entry, and an entry does not match one."""

    path: Path
    entries: tuple[Entry, ...]

    def reason(self, finding: Finding) -> str | None:
        """Why `finding` is accepted; None where it is not."""
        entry = self._entry(finding)
        return entry.reason if entry and entry.covers(finding.severity) else None

    def outgrown(self, finding: Finding) -> Severity | None:
        """As what `finding` was accepted, where it has become worse; None where it has not."""
        entry = self._entry(finding)
        return entry.severity if entry and not entry.covers(finding.severity) else None

    def stale(self, scan: Scan) -> tuple[Entry, ...]:
        """The entries that match no error and no warning."""
        found = {finding.key for finding in _acceptable(scan)}
        return tuple(entry for entry in self.entries if entry.key not in found)

    def refreshed(self, scan: Scan, reason: str) -> Baseline:
        """An entry for each error and warning, as bad as it is today. It keeps its reason
        where it is here and has not become worse, and has `reason` else. Stale entries are
        gone."""
        before = {entry.key: entry for entry in self.entries}
        worst: dict[Key, Severity] = {}
        for severity in reversed(ACCEPTABLE):
            worst |= {finding.key: severity for finding in scan.of(severity)}
        entries = []
        for key, severity in sorted(worst.items()):
            old = before.get(key)
            kept = old.reason if old and old.covers(severity) else reason
            entries.append(Entry(*key, severity, kept))
        return Baseline(self.path, tuple(entries))

    def write(self) -> None:
        """Write the file, whole or not at all."""
        document = {"version": VERSION, "findings": [entry.values() for entry in self.entries]}
        write_whole(self.path, json.dumps(document, indent=2) + "\n")

    def _entry(self, finding: Finding) -> Entry | None:
        if finding.severity not in ACCEPTABLE:
            return None
        return next((entry for entry in self.entries if entry.key == finding.key), None)


def read(path: Path) -> Baseline:
    """The baseline in the file `path`. Raises `BaselineError`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_object)
    except FileNotFoundError:
        raise BaselineError(
            f"{path}: there is no such file; --write-baseline {path} --reason TEXT makes it"
        ) from None
    except OSError as error:
        raise BaselineError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BaselineError(f"{path} is not JSON: {error}; it must be {_FILE}") from None
    return Baseline(path, tuple(_entries(path, document)))


def read_or_empty(path: Path) -> Baseline:
    """As `read`, but a file that does not exist has no entries."""
    return read(path) if path.exists() else Baseline(path, ())


def _acceptable(scan: Scan) -> Iterator[Finding]:
    return (finding for finding in scan.findings if finding.severity in ACCEPTABLE)


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """As `dict`, which would keep the last of two values and say nothing."""
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise ValueError(f"an object has {key!r} twice")
        made[key] = value
    return made


def _entries(path: Path, document: Any) -> Iterator[Entry]:
    if not isinstance(document, dict):
        raise BaselineError(f"{path} holds {_kind(document)}; it must be {_FILE}")
    _check_keys(str(path), document, ("version", "findings"))
    version = document["version"]
    if version != VERSION or isinstance(version, bool):
        raise BaselineError(f"{path}: version is {version!r}; this release reads {VERSION}")
    if not isinstance(document["findings"], list):
        raise BaselineError(
            f"{path}: findings is {_kind(document['findings'])}; it must be a list of entries"
        )
    seen: dict[Key, int] = {}
    for number, values in enumerate(document["findings"], start=1):
        entry = _entry(f"{path}, entry {number}", values)
        first = seen.setdefault(entry.key, number)
        if first != number:
            raise BaselineError(
                f"{path}, entry {number} accepts {entry}, as entry {first} does: delete one"
            )
        yield entry


def _entry(name: str, values: Any) -> Entry:
    if not isinstance(values, dict):
        raise BaselineError(
            f"{name} is {_kind(values)}; it must be an object with {', '.join(_KEYS)}"
        )
    _check_keys(name, values, _KEYS)
    for key in _KEYS:
        if not isinstance(values[key], str):
            raise BaselineError(f"{name}: {key} is {_kind(values[key])}; it must be a string")
    if values["severity"] not in ACCEPTABLE:
        allowed = " or ".join(f'"{severity}"' for severity in ACCEPTABLE)
        raise BaselineError(
            f'{name}: severity is "{values["severity"]}"; it must be {allowed}, the worst that '
            "is accepted"
        )
    entry = Entry(*(values[key] for key in _KEYS))
    if not entry.reason.strip():
        raise BaselineError(f"{name} accepts {entry} without a reason: say why it is accepted")
    return entry


def _check_keys(name: str, values: dict[str, Any], expected: tuple[str, ...]) -> None:
    missing = [key for key in expected if key not in values]
    unknown = [key for key in values if key not in expected]
    if missing:
        raise BaselineError(f"{name} lacks {_quoted(missing)}; it needs {_quoted(expected)}")
    if unknown:
        raise BaselineError(f"{name} has {_quoted(unknown)}; it may have {_quoted(expected)} only")


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")
