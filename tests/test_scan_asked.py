"""Scans of real files in which what was asked for is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_trees import DSA, POOLS, write

from conformance.__main__ import main

LEAF = ("--root", "engine.dsa:DSAPool")
NOTHING = "scan: no class under engine.dsa.DSAPool is in engine: nothing was checked. "
QUESTION = "Is --root the class at the top of the family, and are its subclasses in these paths?\n"
UNREADABLE = "from engine.dsa import DSAPool\nclass X(DSAPool:\n"

FAMILY = ("--root", "engine.pools:KVCache")
VERBS = "--verbs=get_cpu_copy,load_cpu_copy,"


@pytest.fixture(autouse=True)
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose root has a base, and no `move_kv_cache`."""
    above = "class Base:\n    def release(self): ...\n    made = make()\n\n"
    root = POOLS.partition("    def move_kv_cache")[0].replace("KVCache:", "KVCache(Base):")
    write(tmp_path / "engine", {"pools.py": above + root.lstrip(), "dsa.py": DSA})
    monkeypatch.chdir(tmp_path)


Captured = pytest.CaptureFixture[str]


def refused(captured: Captured, *words: str) -> str:
    captured.readouterr()
    assert main(["scan", *words]) == 2
    out, err = captured.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


# -- no class ---------------------------------------------------------------------


def test_scan_of_no_class_is_refused(capsys: Captured) -> None:
    assert refused(capsys, *LEAF, "engine") == NOTHING + QUESTION
    said = refused(capsys, *FAMILY, "engine/pools.py")
    assert "no class under engine.pools.KVCache is in engine/pools.py: nothing was" in said


def test_class_with_an_unknown_base_is_named(capsys: Captured) -> None:
    write(Path("engine"), {"m.py": "from engine.dsa import DSAPool\nclass M(mix(DSAPool)): ...\n"})
    doubt = "Source does not tell whether engine.m.M belongs to it. "
    assert refused(capsys, *LEAF, "engine") == NOTHING + doubt + QUESTION


def test_scan_of_no_class_shows_its_errors(capsys: Captured) -> None:
    write(Path("engine"), {"bad.py": UNREADABLE})
    assert main(["scan", *LEAF, "engine"]) == 1
    assert "  engine.bad\n" in capsys.readouterr().out


def test_scan_of_no_class_is_no_word_on_the_baseline(capsys: Captured) -> None:
    write_it = ("--write-baseline", "b.json", "--reason", "x")
    assert main(["scan", *FAMILY, "engine", *write_it]) == 0
    before = Path("b.json").read_bytes()
    assert b"DSAPool" in before
    for words in (("--baseline", "b.json"), write_it):  # not: stale, delete the entry
        assert refused(capsys, *LEAF, "engine", *words) == NOTHING + QUESTION
    write(Path("engine"), {"bad.py": UNREADABLE})
    assert NOTHING in refused(capsys, *LEAF, "engine", *write_it)
    assert Path("b.json").read_bytes() == before


def test_comparison_needs_a_class_on_one_side(capsys: Captured) -> None:
    write(Path("more/engine"), {"dsa.py": DSA, "pools.py": POOLS})
    write(Path("more/engine"), {"x.py": "from engine.dsa import DSAPool\nclass X(DSAPool): ...\n"})
    for trees in (("engine", "more"), ("more", "engine")):
        assert main(["scan", *LEAF, "--compare", *trees]) == 0
    said = refused(capsys, *LEAF, "--compare", "engine", "engine/dsa.py")
    assert "no class under engine.dsa.DSAPool is in engine, engine/dsa.py: nothing was" in said


# -- no verb ----------------------------------------------------------------------


def test_default_verbs_need_not_all_be_there() -> None:
    assert main(["scan", *FAMILY, "engine"]) == 0
    assert main(["scan", *FAMILY, "engine", f"{VERBS}release"]) == 0


@pytest.mark.parametrize("trees", [["engine"], ["--compare", "engine", "engine"]])
@pytest.mark.parametrize(
    ("verb", "says"),
    [
        ("relaese", "has no method 'relaese'; near is release\n"),
        ("move_kv_cache", "'move_kv_cache'; it has get_cpu_copy, load_cpu_copy, release\n"),
        ("made", "source does not tell the signature of made of root engine.pools:KVCache\n"),
    ],
)
def test_verb_that_the_root_lacks_is_refused(
    capsys: Captured, trees: list[str], verb: str, says: str
) -> None:
    said = refused(capsys, *FAMILY, *trees, f"{VERBS}release,{verb}")
    assert said.startswith("scan: --verbs: ")
    assert said.endswith(says)


def test_verb_that_only_the_new_root_has_is_compared() -> None:
    write(Path("new/engine"), {"dsa.py": DSA, "pools.py": POOLS})
    trees = ("--compare", "engine", "new")
    assert main(["scan", *FAMILY, *trees, f"{VERBS}move_kv_cache"]) == 0
