"""A comparison, for machines."""

from __future__ import annotations

import json
from typing import Any

from conformance.scan.compare import Change, Comparison
from conformance.scan.formats.json import finding_object, head, scan_object


def render(comparison: Comparison) -> str:
    """A new finding may have `was`, a fixed one `now`: its severity on the other side."""
    document = {
        **head(),
        "old": scan_object(comparison.old),
        "new": scan_object(comparison.new),
        "classes": {
            "new": list(comparison.classes_new),
            "gone": list(comparison.classes_gone),
            "moved": [{"from": old, "to": new} for old, new in comparison.moved],
        },
        "keywords": [
            {
                "verb": keyword.verb,
                "parameter": keyword.name,
                "left_behind": list(keyword.left_behind),
            }
            for keyword in comparison.keywords
        ],
        "findings": {
            "new": [_change(comparison, change, "was") for change in comparison.findings_new],
            "fixed": [_change(comparison, change, "now") for change in comparison.findings_fixed],
            "unchanged": comparison.unchanged,
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _change(comparison: Comparison, change: Change, other: str) -> dict[str, Any]:
    return {**finding_object(change.finding, comparison.base), other: change.other}
