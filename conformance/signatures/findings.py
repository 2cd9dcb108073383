"""What a scan of source finds: data, ordered as a reader wants it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from inspect import Signature
from pathlib import Path
from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class ScanError(ValueError):
    """What was asked for cannot be scanned; the message says why and what would be right."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a file; lines count from 1."""

    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of one class.

    `cls` is the dotted name of the class, or of the module for a file that cannot be read;
    `parameter` is what the problem is about, "" where it is the whole verb. `callers` are the
    calls that make it an error; of those in `maybe`, source does not decide the receiver.
    """

    clause: str
    severity: Severity
    cls: str
    verb: str
    parameter: str
    text: str
    place: Place
    callers: tuple[Place, ...] = ()
    maybe: tuple[Place, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What stays the same when lines move: clause, class, verb and parameter."""
        return self.clause, self.cls, self.verb, self.parameter


@dataclass(frozen=True, slots=True)
class Scan:
    """The result of one scan: the dotted names of the root and of the classes under it, and
    the findings, errors first. Of `files` in all, `parsed` mention the family or its verbs.
    `methods` has the signature of each verb of the root and of each class, without `self`; a
    verb that a class inherits has the inherited signature. `abstract` are the classes that
    leave a method abstract."""

    root: str
    verbs: tuple[str, ...]
    classes: tuple[str, ...]
    findings: tuple[Finding, ...]
    files: int
    parsed: int
    methods: Mapping[str, Mapping[str, Signature]] = field(default_factory=dict)
    abstract: frozenset[str] = frozenset()

    def of(self, severity: Severity) -> Iterator[Finding]:
        """The findings of one severity."""
        return (finding for finding in self.findings if finding.severity == severity)
