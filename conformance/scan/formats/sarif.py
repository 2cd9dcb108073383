"""SARIF 2.1.0, which code scanning services and editors read."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from conformance import __version__
from conformance.contract import CLAUSES
from conformance.scan.checked import Checked
from conformance.scan.formats.words import (
    callers,
    default_level,
    got_worse,
    one_line,
    relative,
    stale,
    subject,
    visible,
)
from conformance.signatures.findings import Finding, Place

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
SRCROOT = "%SRCROOT%"
"""The name of the folder that paths are relative to; who reads the file says where it is."""


def render(checked: Checked) -> str:
    """One run, with a rule for each signature clause. Accepted findings are suppressed."""
    rules = _rules(checked)
    places = {rule["id"]: index for index, rule in enumerate(rules)}
    findings = [*checked.open, *(finding for finding, _ in checked.accepted)]
    run = {
        "tool": {"driver": {"name": "kvpool-conformance", "version": __version__, "rules": rules}},
        "invocations": [_invocation(checked)],
        "originalUriBaseIds": {
            SRCROOT: {"description": {"text": "The folder that the scan was run in."}}
        },
        "results": [_result(checked, finding, places[finding.clause]) for finding in findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rules(checked: Checked) -> list[dict[str, Any]]:
    """The signature clauses, and whatever else a finding names."""
    ids = [clause.id for clause in CLAUSES.values() if clause.subject == "signatures"]
    ids += sorted({finding.clause for finding in checked.scan.findings} - set(ids))
    return [_rule(id) for id in ids]


def _rule(id: str) -> dict[str, Any]:
    if id not in CLAUSES:
        return {"id": id}
    clause = CLAUSES[id]
    return {
        "id": id,
        "shortDescription": {"text": clause.sentence},
        "help": {"text": f"From: {clause.source}"},
        "defaultConfiguration": {"level": default_level(clause.level)},
    }


def _result(checked: Checked, finding: Finding, rule: int) -> dict[str, Any]:
    base = checked.base
    told = [f"{subject(finding)}: {one_line(finding.text)}", got_worse(checked, finding)]
    result: dict[str, Any] = {
        "ruleId": finding.clause,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": "; ".join(filter(None, told))},
        "locations": [{"physicalLocation": _physical(finding.place, base)}],
        "partialFingerprints": {"findingKey/v1": _fingerprint(finding)},
    }
    if finding.callers:
        result["relatedLocations"] = [
            {
                "id": number,
                "physicalLocation": _physical(place, base),
                "message": {"text": f"{does} here"},
            }
            for number, (does, place) in enumerate(callers(finding), start=1)
        ]
    if checked.baseline:  # where one result has suppressions, all must say that they have none
        result["suppressions"] = _suppressions(checked.reason(finding))
    return result


def _suppressions(reason: str | None) -> list[dict[str, Any]]:
    if reason is None:
        return []
    return [{"kind": "external", "status": "accepted", "justification": visible(reason)}]


def _fingerprint(finding: Finding) -> str:
    return hashlib.sha256(json.dumps(finding.key).encode()).hexdigest()


def _invocation(checked: Checked) -> dict[str, Any]:
    """How the scan went; stale entries belong to no result and are told here."""
    notifications = [
        {
            "level": "error",
            "message": {"text": stale(entry)},
            "locations": [
                {"physicalLocation": {"artifactLocation": _artifact(path, checked.base)}}
            ],
        }
        for path in ([checked.baseline.path] if checked.baseline else [])
        for entry in checked.stale
    ]
    return {"executionSuccessful": True, "toolExecutionNotifications": notifications}


def _physical(place: Place, base: Path | None) -> dict[str, Any]:
    return {
        "artifactLocation": _artifact(place.path, base),
        "region": {"startLine": place.line},
    }


def _artifact(path: Path, base: Path | None) -> dict[str, str]:
    """A percent-encoded URI: relative to `SRCROOT`, or of a file."""
    text, below = relative(path, base)
    encoded = quote(os.fsencode(text))
    if below:
        return {"uri": encoded, "uriBaseId": SRCROOT}
    return {"uri": f"file://{encoded if encoded.startswith('/') else f'/{encoded}'}"}
