"""What each format says of findings that got worse, and of callers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from scan_samples import BASE, ERROR, KEYWORD, finding, scan

from conformance.scan.baseline import Baseline, Entry
from conformance.scan.checked import Checked
from conformance.scan.formats import FORMATS
from conformance.signatures.findings import Finding, Place

ACCEPTS = Entry(*ERROR.key, "error", "waits for PR 1")
WARNED = Baseline(BASE / "b.json", (replace(ACCEPTS, severity="warning"),))
SURE, PERHAPS = Place(BASE / "z.py", 2), Place(BASE / "a.py", 1)
UNDECIDED = finding(callers=(PERHAPS, SURE), maybe=(PERHAPS,))
WORSE = "got worse: accepted as a warning only"


def checked(*findings: Finding, baseline: Baseline | None = None) -> Checked:
    return Checked(scan(*findings), baseline, BASE)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("table", f"dsa.py:12: error {KEYWORD} ({WORSE})\n"),
        ("markdown", f"which KVCache does<br>{WORSE}<br>passed at"),
        ("github", f"which KVCache does%0A{WORSE}%0Apassed at"),
        ("sarif", f'which KVCache does; {WORSE}"'),
        ("json", '"accepted_as": "warning"'),
    ],
)
def test_finding_that_got_worse_says_so(name: str, told: str) -> None:
    text = FORMATS[name](checked(ERROR, baseline=WARNED))
    assert told in text
    if name in ("table", "markdown", "github"):
        assert "1 error, 0 warnings, 0 notes, 1 worse than accepted, 0 accepted, 0 stale\n" in text
    for baseline in (None, replace(WARNED, entries=(ACCEPTS,))):
        assert WORSE not in FORMATS[name](checked(ERROR, baseline=baseline))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("table", "    passed at z.py:2\n    perhaps passed at a.py:1\n"),
        (
            "markdown",
            "passed at <code>z.py:2</code><br>perhaps passed at <code>a.py:1</code> |",
        ),
        ("github", "%0Apassed at z.py:2%0Aperhaps passed at a.py:1\n"),
    ],
)
def test_sure_callers_come_first(name: str, told: str) -> None:
    assert told in FORMATS[name](checked(UNDECIDED))


def test_perhaps_a_whole_verb_is_called() -> None:
    text = FORMATS["table"](checked(replace(UNDECIDED, parameter="", callers=(PERHAPS,))))
    assert "    perhaps called at a.py:1\n" in text


def test_machines_can_tell_callers_apart() -> None:
    (found,) = json.loads(FORMATS["json"](checked(UNDECIDED)))["findings"]
    assert found["callers"] == [
        {"path": "z.py", "line": 2, "maybe": False},
        {"path": "a.py", "line": 1, "maybe": True},
    ]
    (run,) = json.loads(FORMATS["sarif"](checked(UNDECIDED)))["runs"]
    (result,) = run["results"]
    related = result["relatedLocations"]
    assert [each["message"]["text"] for each in related] == ["passed here", "perhaps passed here"]
    assert [each["physicalLocation"]["region"]["startLine"] for each in related] == [2, 1]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("table", "pkg/dsa.py:7: error"),
        ("markdown", "<code>pkg/dsa.py:7</code>"),
        ("github", "file=pkg/dsa.py,line=7,"),
        ("sarif", '"startLine": 7'),
        ("json", '"line": 7'),
    ],
)
def test_file_that_cannot_be_read_is_shown_at_the_line_of_its_error(name: str, told: str) -> None:
    unreadable = finding(verb="", parameter="", place=Place(ERROR.place.path, 7), callers=())
    assert told in FORMATS[name](checked(unreadable))
