"""What changed between two versions of a tree."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from scan_samples import (
    BASE,
    ERROR,
    HOSTILE,
    HOSTILE_FINDING,
    NOTE,
    ROOT,
    WARNING,
    finding,
    methods,
    scan,
    signature,
)

from conformance.scan.compare import Change, Comparison, NewKeyword, compare
from conformance.scan.formats import COMPARISON_FORMATS
from conformance.signatures.findings import Finding, Scan

OLD_SIGNATURE = signature("indices")
NEW_SIGNATURE = signature("indices", mamba_indices=None)


def with_classes(*names: str, **changes: Any) -> Scan:
    return scan(classes=names, **changes)


def with_methods(**of: Any) -> Scan:
    """`of` maps the simple names of classes to the signature of get_cpu_copy."""
    names = {name: ROOT if name == "root" else f"pkg.{name}" for name in of}
    return scan(
        classes=tuple(names[name] for name in of if name != "root"),
        methods={names[name]: methods(get_cpu_copy=value) for name, value in of.items()},
    )


# -- classes ----------------------------------------------------------------------


def test_new_gone_and_moved_classes() -> None:
    found = compare(
        with_classes("a.Stays", "a.Moves", "a.Goes"), with_classes("a.Stays", "b.Moves", "b.Comes")
    )
    assert found.classes_new == ("b.Comes",)
    assert found.classes_gone == ("a.Goes",)
    assert found.moved == (("a.Moves", "b.Moves"),)


@pytest.mark.parametrize(
    ("old", "new"),
    [(["a.C", "b.C"], ["x.C"]), (["a.C"], ["x.C", "y.C"]), (["a.C", "b.C"], ["x.C", "y.C"])],
)
def test_class_whose_name_is_not_unique_has_not_moved(old: list[str], new: list[str]) -> None:
    found = compare(with_classes(*old), with_classes(*new))
    assert not found.moved
    assert (found.classes_gone, found.classes_new) == (tuple(old), tuple(new))


# -- findings ---------------------------------------------------------------------


def test_new_fixed_and_unchanged_findings() -> None:
    found = compare(scan(ERROR, NOTE), scan(WARNING, NOTE))
    assert found.findings_new == (Change(WARNING),)
    assert found.findings_fixed == (Change(ERROR),)
    assert found.unchanged == 1
    assert not found.failed


def test_new_error_fails() -> None:
    assert compare(scan(), scan(ERROR)).failed
    assert not compare(scan(ERROR), scan(ERROR)).failed
    assert not compare(scan(ERROR), scan()).failed
    assert not compare(scan(), scan(WARNING, NOTE)).failed


def test_warning_that_became_an_error_is_a_new_error() -> None:
    eased = dataclasses.replace(ERROR, severity="warning")
    worse, better = compare(scan(eased), scan(ERROR)), compare(scan(ERROR), scan(eased))
    assert worse.findings_new == (Change(ERROR, "warning"),)
    assert worse.failed
    assert not worse.findings_fixed
    assert better.findings_fixed == (Change(ERROR, "warning"),)
    assert not better.findings_new
    assert worse.unchanged == better.unchanged == 0


def test_finding_that_only_moved_or_is_told_twice_is_unchanged() -> None:
    again = finding(text="in other words", severity="note")
    found = compare(scan(ERROR), scan(ERROR, again))
    assert not found.findings_new
    assert not found.findings_fixed
    assert found.unchanged == 1


def test_finding_of_a_class_that_moved_is_the_same_finding() -> None:
    there = "pkg.sparse.DSAPool"
    found = compare(scan(ERROR, classes=(ERROR.cls,)), scan(finding(cls=there), classes=(there,)))
    assert found.moved == ((ERROR.cls, there),)
    assert found.unchanged == 1
    assert not found.failed


def test_finding_of_a_root_that_moved_is_the_same_finding() -> None:
    old, new = finding(cls=ROOT), finding(cls="pkg.base.KVCache")
    found = compare(scan(old), scan(new, root="pkg.base.KVCache"))
    assert found.unchanged == 1
    assert not found.findings_new


# -- keywords ---------------------------------------------------------------------


def test_new_keyword_and_the_classes_left_behind() -> None:
    found = compare(
        with_methods(root=OLD_SIGNATURE, A=OLD_SIGNATURE),
        with_methods(
            root=NEW_SIGNATURE,
            A=OLD_SIGNATURE,
            B=NEW_SIGNATURE,
            C=signature("indices", "kw"),
            D=signature("indices"),
        ),
    )
    assert found.keywords == (NewKeyword("get_cpu_copy", "mamba_indices", ("pkg.A", "pkg.D")),)


def test_old_keywords_and_new_verbs_are_no_news() -> None:
    both = with_methods(root=NEW_SIGNATURE, A=OLD_SIGNATURE)
    assert not compare(both, both).keywords
    assert not compare(with_methods(), both).keywords
    assert not compare(both, with_methods()).keywords
    assert not compare(
        with_methods(root=OLD_SIGNATURE), with_methods(root=signature("kw"))
    ).keywords


# -- formats ----------------------------------------------------------------------


def full() -> Comparison:
    old = with_methods(root=OLD_SIGNATURE, Goes=OLD_SIGNATURE, Moves=OLD_SIGNATURE)
    new = with_methods(root=NEW_SIGNATURE, A=OLD_SIGNATURE, B=NEW_SIGNATURE)
    eased = dataclasses.replace(ERROR, severity="note")
    return compare(
        dataclasses.replace(old, findings=(eased, WARNING)),
        dataclasses.replace(
            new, findings=(ERROR,), classes=(*new.classes, "x.Moves"), methods=new.methods
        ),
        BASE,
    )


def hostile() -> Comparison:
    left = NewKeyword(HOSTILE, HOSTILE, (HOSTILE,))
    changes = (Change(HOSTILE_FINDING, "note"),)
    names = (HOSTILE,)
    return Comparison(
        scan(root=HOSTILE), scan(root=HOSTILE), names, names, ((HOSTILE, HOSTILE),), changes,
        changes, 0, (left,), BASE,
    )  # fmt: skip


def test_table() -> None:
    text = COMPARISON_FORMATS["table"](full())
    assert text == (
        "new classes\n"
        "  pkg.A\n"
        "  pkg.B\n"
        "\n"
        "gone classes\n"
        "  pkg.Goes\n"
        "\n"
        "moved classes\n"
        "  pkg.Moves to x.Moves\n"
        "\n"
        "get_cpu_copy of pkg.pools.KVCache now takes mamba_indices=; 1 of 3 classes does\n"
        "not\n"
        "  pkg.A\n"
        "\n"
        "new findings\n"
        "\n"
        "pkg/dsa.py:12: error override_accepts_every_keyword (was a note)\n"
        "  pkg.dsa.DSAPool.get_cpu_copy\n"
        "    get_cpu_copy(indices) does not accept mamba_indices=, which KVCache does\n"
        "    passed at pkg/scheduler.py:88\n"
        "\n"
        "fixed findings\n"
        "\n"
        "pkg/dsa.py:12: warning override_accepts_every_keyword\n"
        "  pkg.dsa.DSAPool.load_cpu_copy\n"
        "    get_cpu_copy(indices) does not accept mamba_indices=, which KVCache does\n"
        "\n"
        "old: 2 classes under pkg.pools.KVCache, 4719 files (31 read)\n"
        "new: 3 classes under pkg.pools.KVCache, 4719 files (31 read)\n"
        "1 new error, 1 fixed, 0 unchanged\n"
    )


def test_table_of_no_change() -> None:
    text = COMPARISON_FORMATS["table"](compare(scan(NOTE), scan(NOTE)))
    assert text.splitlines()[-1] == "0 new errors, 0 fixed, 1 unchanged"
    assert len(text.splitlines()) == 3


def test_keyword_that_every_class_takes() -> None:
    found = compare(with_methods(root=OLD_SIGNATURE), with_methods(root=NEW_SIGNATURE))
    assert "mamba_indices=, and so do all classes\n" in COMPARISON_FORMATS["markdown"](found)


def test_json() -> None:
    document = json.loads(COMPARISON_FORMATS["json"](full()))
    assert document["version"] == 1
    assert document["classes"] == {
        "new": ["pkg.A", "pkg.B"],
        "gone": ["pkg.Goes"],
        "moved": [{"from": "pkg.Moves", "to": "x.Moves"}],
    }
    assert document["keywords"] == [
        {"verb": "get_cpu_copy", "parameter": "mamba_indices", "left_behind": ["pkg.A"]}
    ]
    (new,) = document["findings"]["new"]
    (fixed,) = document["findings"]["fixed"]
    assert (new["severity"], new["was"], new["path"]) == ("error", "note", "pkg/dsa.py")
    assert (fixed["verb"], fixed["now"]) == ("load_cpu_copy", None)
    assert document["old"]["signatures"][ROOT] == {"get_cpu_copy": "(indices)"}


def test_markdown() -> None:
    text = COMPARISON_FORMATS["markdown"](full())
    assert text.startswith("## Signature comparison: 1 new error, 1 fixed, 0 unchanged\n")
    assert "1 of 3 classes does not\n\n- <code>pkg.A</code>\n" in text
    assert "### new findings\n\n| severity |" in text
    assert "<summary>fixed findings</summary>" in text
    assert "| was a note |" in text


@pytest.mark.parametrize("name", COMPARISON_FORMATS)
def test_hostile_names_stay_in_their_place(name: str) -> None:
    text = COMPARISON_FORMATS[name](hostile())
    assert text == COMPARISON_FORMATS[name](hostile())
    assert "\n::error" not in text
    assert "\r" not in text
    assert text.encode()
    if name == "markdown":
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert {row.count("|") for row in rows} == {7}
        assert "<b>" not in text


def findings_of(*severities: str) -> list[Finding]:
    return [finding(severity=s, parameter=f"p{i}") for i, s in enumerate(severities)]


def test_totals_name_new_warnings_and_notes() -> None:
    found = compare(scan(), scan(*findings_of("error", "error", "warning", "note")))
    text = COMPARISON_FORMATS["table"](found)
    assert text.endswith("2 new errors, 1 new warning, 1 new note, 0 fixed, 0 unchanged\n")
