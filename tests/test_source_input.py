"""What is asked of a scan: bad requests are refused, and nothing is executed."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from source_trees import (
    DSA,
    KEYWORD,
    MHA,
    POOLS,
    ROOT,
    VERBS,
    classes,
    errors,
    scanned,
    signature,
    told,
    write,
)

from conformance.signatures.findings import Scan, ScanError
from conformance.signatures.source import scan

CALLER = "def f(pool, i, m):\n    pool.get_cpu_copy(i, mamba_indices=m)\n"
FILES = {"mha.py": MHA, "dsa.py": DSA, "deep/er/dsa2.py": DSA, "scheduler.py": CALLER}


def refused(folder: Path, *words: str, pools: str = POOLS, **arguments: object) -> None:
    """The scan is refused, with a message that has all these words."""
    with pytest.raises(ScanError) as caught:
        scanned(folder, pools=pools, **arguments)  # type: ignore[arg-type]
    assert [word for word in words if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


# -- bad requests -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "root",
    [
        "",
        "KVCache",
        "engine.pools.KVCache",
        "engine.pools:",
        ":KVCache",
        "engine/pools.py:KVCache",
        "engine..pools:KVCache",
        "engine.pools:KV Cache",
        "engine.pools:KVCache:x",
        ".pools:X",
    ],
)
def test_root_of_another_form_is_refused(tmp_path: Path, root: str) -> None:
    refused(tmp_path, repr(root), "module:Class", root=root)


def test_module_that_is_not_there_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "engine.cache", "no module", root="engine.cache:KVCache")


def test_class_that_is_not_there_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "pools.py", "no class", "KVcache", root="engine.pools:KVcache")


@pytest.mark.parametrize("line", ["KVCache = 3", "def KVCache(): ...", "KVCache: type", "# none"])
def test_root_that_is_no_class_is_refused(tmp_path: Path, line: str) -> None:
    refused(tmp_path, "no class", "KVCache", pools=line)


def test_root_in_a_broken_file_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "pools.py", "cannot be read", "line 1", pools="class KVCache(:\n")


@pytest.mark.parametrize("place", [0, 1])
def test_verb_that_is_not_there_is_refused(tmp_path: Path, place: int) -> None:
    verbs = ["get_cpu_copy", "load_cpu_copy", "move_kv_cache"]
    verbs[place] = "get_cpu_cpoy"
    refused(tmp_path, ROOT, "get_cpu_cpoy", verbs=verbs)


def test_other_verbs_may_be_missing(tmp_path: Path) -> None:
    found = scanned(tmp_path, {"dsa.py": DSA}, verbs=("get_cpu_copy", "load_cpu_copy", "clear"))
    assert [severity for severity, *_ in told(found)] == ["warning"]
    assert set(found.methods[found.root]) == {"get_cpu_copy", "load_cpu_copy"}


@pytest.mark.parametrize("tree", ["nowhere", "engine/nowhere.py", "no such package"])
def test_tree_that_is_not_there_is_refused(tmp_path: Path, tree: str) -> None:
    refused(tmp_path, tree, "no such file", trees=["engine", tree])


def test_package_without_source_is_refused() -> None:
    with pytest.raises(ScanError, match="sys"):
        scan("sys:Class", ["sys"], VERBS)


def test_package_that_is_not_installed_is_refused() -> None:
    with pytest.raises(ScanError, match="not_installed_anywhere"):
        scan("not_installed_anywhere:X", ["not_installed_anywhere"], VERBS)


def test_root_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    for copy in ("old", "new"):
        write(tmp_path / copy / "engine", {"__init__.py": "", "pools.py": POOLS})
    with pytest.raises(ScanError) as caught:
        scan(ROOT, [str(tmp_path)], VERBS)
    for word in ("engine.pools", "more than once", str(tmp_path / "old"), str(tmp_path / "new")):
        assert word in str(caught.value)


# -- good requests ------------------------------------------------------------------------


@pytest.mark.parametrize("tree", [".", "engine", "engine/pools.py", "engine/deep"])
def test_tree_may_begin_anywhere(tmp_path: Path, tree: str) -> None:
    found = scanned(tmp_path, FILES, trees=["engine/dsa.py", tree])
    assert "dsa.DSAPool" in classes(found)
    assert found.root == "engine.pools.KVCache"


def test_tree_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absolute = scanned(tmp_path, FILES)
    monkeypatch.chdir(tmp_path)
    assert scan(ROOT, ["engine"], VERBS) == absolute
    monkeypatch.chdir(tmp_path / "engine")
    assert scan(ROOT, ["../engine"], VERBS) == absolute


def test_tree_may_be_the_name_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"__init__.py": "raise SystemExit(3)", "pools.py": POOLS, "sub/dsa.py": DSA}
    write(
        tmp_path / "an_engine_by_name",
        {
            n: t.replace("engine", "an_engine_by_name") if n != "__init__.py" else t
            for n, t in files.items()
        },
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    root = "an_engine_by_name.pools:KVCache"
    for place in ("an_engine_by_name", "an_engine_by_name.sub"):
        assert scan(root, [place], VERBS).classes == ("an_engine_by_name.sub.dsa.DSAPool",)
    assert "an_engine_by_name" not in sys.modules


def test_root_may_be_an_inner_class(tmp_path: Path) -> None:
    pools = "class Outer:\n" + "\n".join(f"    {line}" for line in POOLS.splitlines())
    source = DSA.replace("import KVCache", "import Outer").replace("(KVCache)", "(Outer.KVCache)")
    found = scanned(tmp_path, {"dsa.py": source}, pools=pools, root="engine.pools:Outer.KVCache")
    assert found.root == "engine.pools.Outer.KVCache"
    assert [f.cls for f in found.findings] == ["engine.dsa.DSAPool"]


def test_root_may_be_named_where_it_is_imported(tmp_path: Path) -> None:
    files = {"dsa.py": DSA, "api.py": "from engine.pools import KVCache as Cache\n"}
    found = scanned(tmp_path, files, root="engine.api:Cache")
    assert found.root == "engine.pools.KVCache"
    assert classes(found) == ["dsa.DSAPool"]


def test_root_may_inherit_its_verbs(tmp_path: Path) -> None:
    pools = POOLS.replace("KVCache", "Copying") + "\nclass KVCache(Copying): ...\n"
    found = scanned(tmp_path, {"dsa.py": DSA}, pools=pools)
    assert told(found) == [("warning", KEYWORD, "dsa.DSAPool", "get_cpu_copy", "mamba_indices")]
    assert signature(found, "pools.KVCache") == "(indices, mamba_indices=None)"


# -- nothing is executed ------------------------------------------------------------------


def test_nothing_of_the_package_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    effect = f"open({str(mark)!r}, 'w').close()\n"
    every = {
        "__init__.py": effect + "raise SystemExit(3)\n",
        "effect.py": DSA + effect + "import os; os._exit(3)\n",
        "default.py": MHA + f"\ndef f(pool=[{effect.strip()}]):\n    pool.get_cpu_copy(1)\n",
    }
    before = set(sys.modules)
    path = list(sys.path)
    found = scanned(tmp_path, every)
    assert classes(found) == ["default.MHAPool", "effect.DSAPool"]
    assert not mark.exists()
    assert {name for name in set(sys.modules) - before if name.startswith("engine")} == set()
    assert set(sys.modules) == before
    assert sys.path == path


def test_nothing_is_written_into_the_tree(tmp_path: Path) -> None:
    scanned(tmp_path, FILES)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".py"}
    assert list(tmp_path.rglob("__pycache__")) == []


# -- the same question, the same answer ---------------------------------------------------


def test_scan_twice_is_equal(tmp_path: Path) -> None:
    first = scanned(tmp_path, FILES)
    assert len(errors(first)) == 2
    assert scanned(tmp_path, FILES) == first


@pytest.mark.parametrize("order", [sorted, lambda found: sorted(found, reverse=True)])
def test_order_of_a_folder_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: object
) -> None:
    real, expected = os.scandir, scanned(tmp_path, FILES)

    def listed(folder: str) -> Sequence[os.DirEntry[str]]:
        entries = {entry.name: entry for entry in real(folder)}
        return [entries[name] for name in order(entries)]  # type: ignore[operator]

    monkeypatch.setattr(os, "scandir", listed)
    assert scan(ROOT, [str(tmp_path / "engine")], VERBS) == expected


def test_order_of_trees_does_not_change_what_is_told(tmp_path: Path) -> None:
    def found(*trees: str) -> Scan:
        return scanned(tmp_path, FILES, trees=trees)

    one, other = found("engine/deep", "engine"), found("engine", "engine/deep")
    assert one.findings == other.findings
    assert one.classes == other.classes == found("engine").classes


def test_order_of_other_verbs_does_not_change_what_is_told(tmp_path: Path) -> None:
    found = scanned(tmp_path, FILES, verbs=(*VERBS, "clear", "__init__"))
    assert found.findings == scanned(tmp_path, FILES).findings


def test_key_stays_when_lines_move(tmp_path: Path) -> None:
    before = scanned(tmp_path, FILES)
    after = scanned(tmp_path, FILES | {"dsa.py": "\n\n# moved\n" + DSA})
    assert [f.key for f in after.findings] == [f.key for f in before.findings]
    assert after.findings != before.findings
