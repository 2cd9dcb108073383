"""Everything that a scan found, for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conformance import __version__
from conformance.scan.checked import Checked
from conformance.scan.formats.words import callers, relative
from conformance.signatures.findings import SEVERITIES, Finding, Place, Scan

VERSION = 1
"""The version of this format; it changes when a field is removed or changes its meaning."""


def render(checked: Checked) -> str:
    """`findings` are those that are not accepted, errors first; `accepted_as` is the severity
    that the baseline accepts where one got worse. `accepted` have a `reason`."""
    base = checked.base
    counts: dict[str, int] = {severity: len(checked.of(severity)) for severity in SEVERITIES}
    counts |= {"accepted": len(checked.accepted), "worse": len(checked.worse)}
    counts |= {"stale": len(checked.stale)}
    document: dict[str, Any] = {
        **head(),
        **scan_object(checked.scan),
        "counts": counts,
        "findings": [
            {**finding_object(finding, base), "accepted_as": checked.outgrown(finding)}
            for finding in checked.open
        ],
        "accepted": [
            {**finding_object(finding, base), "reason": reason}
            for finding, reason in checked.accepted
        ],
        "stale": [entry.values() for entry in checked.stale],
    }
    return json.dumps(document, indent=2) + "\n"


def head() -> dict[str, Any]:
    """What every document begins with."""
    return {"version": VERSION, "tool": {"name": "kvpool-conformance", "version": __version__}}


def scan_object(scan: Scan) -> dict[str, Any]:
    """What was scanned, its findings apart."""
    return {
        "root": scan.root,
        "verbs": list(scan.verbs),
        "classes": list(scan.classes),
        "signatures": {
            cls: {verb: str(signature) for verb, signature in sorted(methods.items())}
            for cls, methods in sorted(scan.methods.items())
        },
        "files": scan.files,
        "parsed": scan.parsed,
    }


def finding_object(finding: Finding, base: Path | None) -> dict[str, Any]:
    """One finding; paths as in the other formats."""
    return {
        "clause": finding.clause,
        "severity": finding.severity,
        "class": finding.cls,
        "verb": finding.verb,
        "parameter": finding.parameter,
        "text": finding.text,
        **_place(finding.place, base),
        "callers": [
            {**_place(place, base), "maybe": place in finding.maybe}
            for _, place in callers(finding)
        ],
    }


def _place(place: Place, base: Path | None) -> dict[str, Any]:
    return {"path": relative(place.path, base)[0], "line": place.line}
