"""Findings that are accepted: read, matched, written."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from scan_samples import BASE, ERROR, HOSTILE, HOSTILE_FINDING, NOTE, WARNING, finding, scan

from conformance.scan.baseline import Baseline, BaselineError, Entry, read, read_or_empty
from conformance.scan.checked import Checked
from conformance.scan.files import write_whole
from conformance.signatures.findings import Finding, ScanError

ENTRY = {
    "clause": ERROR.clause,
    "class": ERROR.cls,
    "verb": ERROR.verb,
    "parameter": ERROR.parameter,
    "severity": "error",
    "reason": "waits for PR 1",
}


def written(folder: Path, *entries: Any, **changes: Any) -> Path:
    path = folder / "baseline.json"
    document = {"version": 1, "findings": list(entries)} | changes
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


EASED = finding(severity="warning", callers=())
"""What `ERROR` was before somebody called it."""


# -- read -------------------------------------------------------------------------


def test_read(tmp_path: Path) -> None:
    baseline = read(written(tmp_path, ENTRY))
    assert baseline.entries == (Entry(*ERROR.key, "error", "waits for PR 1"),)
    assert baseline.reason(ERROR) == "waits for PR 1"
    assert baseline.reason(WARNING) is None


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"version": 2}, r"version is 2; this release reads 1"),
        ({"version": True}, r"version is True; this release reads 1"),
        ({"findings": {}}, r"findings is an object; it must be a list of entries"),
        ({"extra": 1}, r'has "extra"; it may have "version", "findings" only'),
        ({"findings": ["x"]}, r"entry 1 is a string; it must be an object with clause, class"),
        ({"findings": [ENTRY, None]}, r"entry 2 is null"),
        ({"findings": [{**ENTRY, "reason": " "}]}, r"entry 1 accepts .* without a reason: say why"),
        ({"findings": [{**ENTRY, "reason": 3}]}, r"entry 1: reason is a number; .* a string"),
        ({"findings": [{**ENTRY, "severity": "note"}]}, r'severity is "note"; .* "error" or "warn'),
        ({"findings": [{**ENTRY, "line": 3}]}, r'entry 1 has "line"; it may have "clause", '),
        ({"findings": [ENTRY, {**ENTRY, "reason": "x"}]}, r"entry 2 .* as entry 1 does: delete"),
    ],
)
def test_wrong_content_is_refused(tmp_path: Path, document: Any, message: str) -> None:
    path = written(tmp_path, **document)
    with pytest.raises(BaselineError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("key", ENTRY)
def test_missing_key_is_refused(tmp_path: Path, key: str) -> None:
    entry = {name: value for name, value in ENTRY.items() if name != key}
    with pytest.raises(BaselineError, match=f'entry 2 lacks "{key}"; it needs "clause", "class"'):
        read(written(tmp_path, {**ENTRY, "parameter": "other"}, entry))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON: Expecting value"),
        ("{", "is not JSON: Expecting property name"),
        ("[]", "holds a list; it must be"),
        ('{"version": 1}', 'lacks "findings"'),
        ('{"version": 1, "version": 1, "findings": []}', "an object has 'version' twice"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_text_that_is_no_baseline_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BaselineError, match=message):
        read(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(b"\xff")
    with pytest.raises(BaselineError, match="b.json is not JSON: 'utf-8' codec"):
        read(path)


def test_missing_file_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="no such file; --write-baseline"):
        read(tmp_path / "none.json")
    with pytest.raises(BaselineError, match="cannot be read: Is a directory"):
        read(tmp_path)


# -- match ------------------------------------------------------------------------


def test_lines_and_words_may_change() -> None:
    baseline = Baseline(Path("b.json"), (Entry(*ERROR.key, "error", "why"),))
    assert baseline.reason(finding(text="said otherwise", callers=())) == "why"
    assert baseline.reason(finding(severity="warning")) == "why"
    assert not baseline.stale(scan(finding(severity="warning")))


def test_entry_of_a_warning_does_not_accept_the_error_that_it_becomes() -> None:
    entry = Entry(*ERROR.key, "warning", "why")
    baseline = Baseline(BASE / "b.json", (entry,))
    was, now = Checked(scan(EASED), baseline), Checked(scan(ERROR), baseline)
    assert was.accepted == ((EASED, "why"),)
    assert not was.worse
    assert not was.failed
    assert now.open == now.worse == (ERROR,)
    assert now.outgrown(ERROR) == "warning"
    assert not now.accepted
    assert not now.stale  # it says what was accepted
    assert now.failed


def test_entry_of_an_error_accepts_the_warning() -> None:
    checked = Checked(scan(EASED), Baseline(BASE / "b.json", (Entry(*ERROR.key, "error", "why"),)))
    assert checked.accepted == ((EASED, "why"),)
    assert not checked.worse


def test_entry_accepts_one_of_two_findings_with_its_key() -> None:
    entry = Entry(*ERROR.key, "warning", "why")
    checked = Checked(scan(ERROR, EASED), Baseline(BASE / "b.json", (entry,)))
    assert checked.open == checked.worse == (ERROR,)
    assert checked.accepted == ((EASED, "why"),)


def test_entry_of_a_note_is_stale() -> None:
    baseline = Baseline(Path("b.json"), (Entry(*NOTE.key, "warning", "why"),))
    assert baseline.reason(NOTE) is None
    assert baseline.stale(scan(NOTE)) == baseline.entries


def test_what_fails() -> None:
    accepts = Baseline(BASE / "b.json", (Entry(*ERROR.key, "error", "why"),))
    assert Checked(scan(ERROR)).failed
    assert not Checked(scan(WARNING, NOTE)).failed
    assert not Checked(scan(ERROR), accepts).failed
    assert Checked(scan(), accepts).failed
    assert Checked(scan(ERROR, finding(parameter="other")), accepts).failed
    assert Checked(scan(ERROR), accepts).accepted == ((ERROR, "why"),)


# -- write ------------------------------------------------------------------------


def test_written_baseline_accepts_all_errors_and_warnings(tmp_path: Path) -> None:
    found = scan(HOSTILE_FINDING, ERROR, finding(text="again"), WARNING, NOTE)
    path = tmp_path / "b.json"
    read_or_empty(path).refreshed(found, "found at first").write()
    baseline = read(path)
    assert {entry.key for entry in baseline.entries} == {
        ERROR.key,
        WARNING.key,
        HOSTILE_FINDING.key,
    }
    assert len(baseline.entries) == 3
    assert {entry.reason for entry in baseline.entries} == {"found at first"}
    assert not Checked(found, baseline).failed
    assert path.read_text(encoding="utf-8").isascii()


def test_rewritten_baseline_keeps_reasons_and_drops_what_is_stale(tmp_path: Path) -> None:
    path = written(tmp_path, ENTRY, {**ENTRY, "class": "pkg.Gone"})
    read_or_empty(path).refreshed(scan(ERROR, WARNING), "new").write()
    assert {entry.key: entry.reason for entry in read(path).entries} == {
        ERROR.key: "waits for PR 1",
        WARNING.key: "new",
    }


@pytest.mark.parametrize(
    ("before", "found", "severity", "reason"),
    [
        ("warning", (ERROR,), "error", "new"),
        ("warning", (EASED, ERROR), "error", "new"),
        ("warning", (EASED,), "warning", "waits for PR 1"),
        ("error", (ERROR, EASED), "error", "waits for PR 1"),
        ("error", (EASED,), "warning", "waits for PR 1"),
    ],
)
def test_rewritten_baseline_has_a_new_reason_for_what_got_worse(
    tmp_path: Path, before: str, found: tuple[Finding, ...], severity: str, reason: str
) -> None:
    path = written(tmp_path, {**ENTRY, "severity": before})
    read_or_empty(path).refreshed(scan(*found), "new").write()
    (entry,) = read(path).entries
    assert (entry.severity, entry.reason) == (severity, reason)
    assert not Checked(scan(*found), read(path)).failed


def test_baseline_does_not_depend_on_the_order_of_the_scan(tmp_path: Path) -> None:
    texts = []
    for found in (scan(ERROR, WARNING), scan(WARNING, ERROR)):
        Baseline(tmp_path / "b.json", ()).refreshed(found, HOSTILE).write()
        texts.append((tmp_path / "b.json").read_bytes())
    assert texts[0] == texts[1]


def test_failed_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, ENTRY)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ScanError, match="baseline.json cannot be written: No space left on device"):
        read(path).refreshed(scan(WARNING), "new").write()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_written_file_keeps_its_mode_and_its_links(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, "new \udcff é\n")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new \\udcff é\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_device_is_written_to_and_not_replaced() -> None:
    write_whole(Path(os.devnull), "text")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("name", ["missing/b.json", "."])
def test_place_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ScanError, match=f"{tmp_path / name} cannot be written: "):
        write_whole(tmp_path / name, "text")
