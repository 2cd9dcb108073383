"""Bases followed across modules, by every name that Python lets a class have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from source_trees import (
    BODIES,
    COVERED,
    DSA,
    KEYWORD,
    MHA,
    classes,
    scanned,
    signature,
    told,
    write,
)

from conformance.signatures.findings import Scan
from conformance.signatures.source import scan

WRONG = "    def get_cpu_copy(self, indices): ...\n"
FOUND = [("warning", KEYWORD, "x.Wrong", "get_cpu_copy", "mamba_indices")]


def of(folder: Path, source: str, files: Mapping[str, str] | None = None) -> Scan:
    """The scan of `x.py`, whose last class drops a keyword."""
    whole = f"{source.removesuffix(' ...')}\n{WRONG}"
    return scanned(folder, {"x.py": whole, **(files or {})}, pools=BODIES)


NAMES = ("KVCache", "Wrong")
WAYS = {
    "from": "from engine.pools import KVCache\nclass Wrong(KVCache): ...",
    "from as": "from engine.pools import KVCache as Base\nclass Wrong(Base): ...",
    "import": "import engine.pools\nclass Wrong(engine.pools.KVCache): ...",
    "import as": "import engine.pools as p\nclass Wrong(p.KVCache): ...",
    "module": "from engine import pools\nclass Wrong(pools.KVCache): ...",
    "module as": "from engine import pools as p\nclass Wrong(p.KVCache): ...",
    "relative": "from .pools import KVCache\nclass Wrong(KVCache): ...",
    "relative module": "from . import pools\nclass Wrong(pools.KVCache): ...",
    "alias": "from engine.pools import KVCache\nBase = KVCache\nclass Wrong(Base): ...",
    "alias of a module": "import engine.pools\np = engine.pools\nclass Wrong(p.KVCache): ...",
    "alias of an attribute": "import engine.pools\nB = engine.pools.KVCache\nclass Wrong(B): ...",
    "alias with an annotation": (
        "from engine.pools import KVCache\nBase: type = KVCache\nclass Wrong(Base): ..."
    ),
    "alias of an alias": (
        "from engine.pools import KVCache as A\nB = A\nC = B\nclass Wrong(C): ..."
    ),
    "alias in a tuple": (
        "from engine.pools import KVCache\nBase, Other = KVCache, 1\nclass Wrong(Base): ..."
    ),
    "chosen base": (
        "from engine.pools import KVCache\nclass Wrong(KVCache if torch.cuda else object): ..."
    ),
    "chosen alias": (
        "from engine.pools import KVCache\n"
        "Base = KVCache if torch.cuda else object\nclass Wrong(Base): ..."
    ),
    "base or other": "from engine.pools import KVCache\nclass Wrong(KVCache or object): ...",
    "generic": "from engine.pools import KVCache\nclass Wrong(KVCache[int]): ...",
    "generic alias": (
        "from engine.pools import KVCache\nBase = KVCache[int]\nclass Wrong(Base): ..."
    ),
    "second base": "from engine.pools import KVCache\nclass Wrong(list, KVCache): ...",
    "unknown base beside": (
        "from engine.pools import KVCache\nimport torch_npu\n"
        "class Wrong(torch_npu.Pool, make(), KVCache): ..."
    ),
    "keyword beside": "from engine.pools import KVCache\nclass Wrong(KVCache, kind=3): ...",
    "type checking": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
        "    from engine.pools import KVCache\nelse:\n    KVCache = object\n"
        "class Wrong(KVCache): ..."
    ),
    "fallback": (
        "try:\n    from engine.pools import KVCache\nexcept ImportError:\n    KVCache = object\n"
        "class Wrong(KVCache): ..."
    ),
    "star": "from engine.pools import *\nclass Wrong(KVCache): ...",
    "relative star": "from .pools import *\nclass Wrong(KVCache): ...",
    "class of the same name on a condition": (
        "from engine.pools import KVCache\nif torch.npu:\n    class KVCache(KVCache): ...\n"
        "class Wrong(KVCache): ..."
    ),
    "class of the same name": (
        "from engine.pools import KVCache\nclass KVCache(KVCache): ...\nclass Wrong(KVCache): ..."
    ),
}


@pytest.mark.parametrize("source", WAYS.values(), ids=WAYS)
def test_base_is_found_by_any_name(tmp_path: Path, source: str) -> None:
    found = of(tmp_path, source)
    assert classes(found) == sorted(f"x.{n}" for n in NAMES if f"class {n}(" in source)
    assert [f for f in told(found) if f[2] == "x.Wrong"] == FOUND


@pytest.mark.parametrize(
    "inside",
    [
        "from engine.pools import KVCache",
        "from engine.pools import KVCache as Base",
        "Base = engine.pools.KVCache",
        "import engine.pools as p; Base = p.KVCache",
    ],
)
def test_names_of_a_function_are_followed_too(tmp_path: Path, inside: str) -> None:
    base = "Base" if "Base" in inside else "KVCache"
    source = f"""
        import engine.pools
        def make():
            {inside}
            class Wrong({base}):
                def get_cpu_copy(self, indices): pass
            return Wrong
    """
    found = scanned(tmp_path, {"x.py": source}, pools=BODIES)
    assert classes(found) == ["x.make.<locals>.Wrong"]


NOT_MEMBERS = {
    "another class of this name": "class KVCache: pass\nclass Wrong(KVCache): ...",
    "another module": "from torch.pools import KVCache\nclass Wrong(KVCache): ...",
    "a comment": "class Wrong:  # as KVCache\n    '''A KVCache.'''",
    "an attribute of it": (
        "from engine.pools import KVCache\nclass Wrong(KVCache.get_cpu_copy): ..."
    ),
    "a metaclass": "from engine.pools import KVCache\nclass Wrong(metaclass=KVCache): ...",
    "a parameter": "from engine.pools import KVCache\nclass Wrong(list[KVCache]): ...",
    "a name of the class": ("from engine import pools\nclass Wrong:\n    KVCache = pools.KVCache"),
    "itself": "class Wrong(Wrong): ...",
}


@pytest.mark.parametrize("source", NOT_MEMBERS.values(), ids=NOT_MEMBERS)
def test_class_that_only_looks_like_a_member_is_none(tmp_path: Path, source: str) -> None:
    found = of(tmp_path, source)
    assert classes(found) == []
    assert found.findings == ()


# -- packages -----------------------------------------------------------------------------

PACKAGES: dict[str, dict[str, str]] = {
    "a re-export": {
        "api/__init__.py": "from engine.pools import KVCache",
        "x.py": "from engine.api import KVCache\nclass Wrong(KVCache): ...",
    },
    "a re-export of a re-export": {
        "api/__init__.py": "from .inner import KVCache as Cache",
        "api/inner/__init__.py": "from ...pools import KVCache",
        "x.py": "from engine.api import Cache\nclass Wrong(Cache): ...",
    },
    "a star of a star": {
        "api/__init__.py": "from .inner import *",
        "api/inner.py": "from engine.pools import *",
        "x.py": "from engine import api\nclass Wrong(api.KVCache): ...",
    },
    "a star with a list": {
        "hidden.py": "from engine.pools import KVCache as _Base\n__all__ = ['_Base']",
        "x.py": "from engine.hidden import *\nclass Wrong(_Base): ...",
    },
    "the last star": {
        "one.py": "class Base: pass",
        "two.py": "from engine.pools import KVCache as Base",
        "x.py": "from engine.one import *\nfrom engine.two import *\nclass Wrong(Base): ...",
    },
    "a star that does not list it": {
        "one.py": "from engine.pools import KVCache as Base",
        "two.py": "__all__ = ['other']\nother = 1\nclass Base: pass",
        "x.py": "from engine.one import *\nfrom engine.two import *\nclass Wrong(Base): ...",
    },
    "stars on a condition": {
        "one.py": "class Base: pass",
        "two.py": "from engine.pools import KVCache as Base",
        "x.py": (
            "try:\n    from engine.one import *\nexcept ImportError:\n"
            "    from engine.two import *\nclass Wrong(Base): ..."
        ),
    },
    "a folder without __init__": {
        "space/deep/one.py": "from engine.pools import KVCache as Base",
        "x.py": "from engine.space.deep.one import Base\nclass Wrong(Base): ...",
    },
    "a module of a folder without __init__": {
        "space/one.py": "from engine.pools import KVCache as Base",
        "x.py": "from engine.space import one\nclass Wrong(one.Base): ...",
    },
    "dots": {
        "space/deep/one.py": "from ...pools import KVCache as Base",
        "x.py": "from .space.deep.one import Base\nclass Wrong(Base): ...",
    },
    "a class named as its module": {
        "Base/__init__.py": "from .Base import Base",
        "Base/Base.py": "from engine.pools import KVCache\nclass Base(KVCache): pass",
        "x.py": "from engine.Base import Base\nclass Wrong(Base): ...",
    },
    "an alias in another module": {
        "one.py": "from engine import pools\nBase = pools.KVCache",
        "x.py": "from engine.one import Base as B\nclass Wrong(B): ...",
    },
    "a chosen alias in another module": {
        "one.py": "from engine import pools\nBase = pools.KVCache if pools.fast else object",
        "x.py": "from engine.one import Base\nclass Wrong(Base): ...",
    },
    "an inner class": {
        "one.py": (
            "from engine.pools import KVCache\nclass Outer:\n    class Base(KVCache): pass\n"
        ),
        "x.py": "from engine.one import Outer\nclass Wrong(Outer.Base): ...",
    },
    "an inner class of a base": {
        "one.py": (
            "from engine.pools import KVCache\nclass Outer:\n    class Base(KVCache): pass\n"
            "class Derived(Outer): pass\n"
        ),
        "x.py": "from engine.one import Derived\nclass Wrong(Derived.Base): ...",
    },
    "a cycle": {
        "one.py": "from engine.x import Wrong\nfrom engine.pools import KVCache as Base",
        "x.py": "from engine.one import Base\nclass Wrong(Base): ...",
    },
    "a cycle of stars": {
        "one.py": "from engine.two import *\nfrom engine.pools import *",
        "two.py": "from engine.one import *",
        "x.py": "from engine.two import *\nclass Wrong(KVCache): ...",
    },
}


@pytest.mark.parametrize("files", PACKAGES.values(), ids=PACKAGES)
def test_base_is_found_across_modules(tmp_path: Path, files: dict[str, str]) -> None:
    found = of(tmp_path, files["x.py"], {n: t for n, t in files.items() if n != "x.py"})
    assert "x.Wrong" in classes(found)
    assert [f for f in told(found) if f[2] == "x.Wrong"] == FOUND


def test_name_that_imports_itself_in_a_circle_is_nothing(tmp_path: Path) -> None:
    files = {"one.py": "from engine.x import Base", "pools.py": BODIES}
    assert classes(of(tmp_path, "from engine.one import Base\nclass Wrong(Base): ...", files)) == []


def test_two_classes_of_one_name_are_told_apart(tmp_path: Path) -> None:
    files = {"a.py": DSA, "b.py": DSA.replace("indices):", "indices, mamba_indices=None):")}
    found = scanned(tmp_path, files)
    assert classes(found) == ["a.DSAPool", "b.DSAPool"]
    assert [cls for _, _, cls, _, _ in told(found)] == ["a.DSAPool"]


def test_diamond_takes_the_method_that_python_takes(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class A(KVCache):
            def get_cpu_copy(self, a): ...
        class B(A): ...
        class C(A):
            def get_cpu_copy(self, c): ...
        class D(B, C): ...
        class E(C, B): ...
        class F(B): ...
        class M:
            def get_cpu_copy(self, m): ...
        class G(F, M): ...
        class H(M, F): ...
    """
    found = scanned(tmp_path, {"x.py": source}, pools=BODIES)
    taken = {cls: signature(found, f"x.{cls}") for cls in "ABCDEFGH"}
    assert taken == dict.fromkeys("ABFG", "(a)") | dict.fromkeys("CDE", "(c)") | {"H": "(m)"}


def test_order_of_bases_that_python_refuses_does_no_harm(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class A(KVCache): ...
        class B(KVCache, A): ...
        class C(A, A): ...
        class D(E): ...
        class E(D, KVCache): ...
    """
    found = scanned(tmp_path, {"x.py": source}, pools=BODIES)
    assert set(classes(found)) >= {"x.A", "x.B", "x.C"}


def test_class_below_a_class_that_is_chosen_is_found(tmp_path: Path) -> None:
    source = """
        from engine.dsa import DSAPool
        from engine.mha import MHAPool
        class Chosen(MHAPool if fast else DSAPool): ...
        class Below(Chosen):
            def get_cpu_copy(self, indices): ...
    """
    found = scanned(tmp_path, {"x.py": source, "mha.py": MHA, "dsa.py": DSA})
    assert classes(found) == ["dsa.DSAPool", "mha.MHAPool", "x.Below", "x.Chosen"]
    assert {cls for _, _, cls, _, _ in told(found)} == {"dsa.DSAPool", "x.Below"}


def test_package_beside_the_engine_is_part_of_the_family(tmp_path: Path) -> None:
    write(tmp_path / "a" / "engine", {"__init__.py": "", "pools.py": BODIES})
    write(tmp_path / "b" / "plugin", {"__init__.py": "", "npu.py": DSA})
    trees = [str(tmp_path / "b" / "plugin"), str(tmp_path / "a" / "engine")]
    found = scan("engine.pools:KVCache", trees, ["get_cpu_copy", "load_cpu_copy"])
    assert found.classes == ("plugin.npu.DSAPool",)
    assert [f.cls for f in found.findings] == ["plugin.npu.DSAPool"]


def test_base_that_a_call_makes_is_a_note(tmp_path: Path) -> None:
    source = "from engine.pools import KVCache\nclass Timed(timed(KVCache)): ...\n"
    found = scanned(tmp_path, {"x.py": source}, pools=BODIES)
    assert classes(found) == []
    assert told(found) == [("note", COVERED, "x.Timed", "", "")]
    assert "Timed(timed(KVCache))" in found.findings[0].text
