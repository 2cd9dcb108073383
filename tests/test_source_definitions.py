"""Verbs in every form in which people define them, and the signatures that they have."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from source_trees import (
    BODIES,
    KEYWORD,
    POOLS,
    STUBS,
    at,
    classes,
    errors,
    scanned,
    signature,
    the_one,
    told,
)

from conformance.signatures.findings import Scan

HEAD = """
import functools
import torch
from typing import overload
from engine.pools import KVCache

def copy(self, indices, mamba_indices=0, *, where): ...

"""


def defining(folder: Path, body: str, above: str = "", pools: str = BODIES) -> Scan:
    """The scan of a class `XPool` with this body, and with this text above it."""
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    source = HEAD + textwrap.dedent(above) + f"\nclass XPool(KVCache):\n{lines}\n"
    return scanned(folder, {"x.py": source}, pools=pools)


SIGNATURES = {
    "def get_cpu_copy(self): ...": "()",
    "def get_cpu_copy(self, /, indices): ...": "(indices)",
    "def get_cpu_copy(self, indices, /, m=None): ...": "(indices, /, m=None)",
    "def get_cpu_copy(self, *, indices, m=None): ...": "(*, indices, m=None)",
    "def get_cpu_copy(self, *indices, m, **rest): ...": "(*indices, m, **rest)",
    "def get_cpu_copy(*args, **kwargs): ...": "(*args, **kwargs)",
    "def get_cpu_copy(this, indices: 'torch.Tensor' = ()) -> None: ...": "(indices=())",
    "async def get_cpu_copy(self, indices): ...": "(indices)",
    "@staticmethod\ndef get_cpu_copy(indices, m=None): ...": "(indices, m=None)",
    "@classmethod\ndef get_cpu_copy(cls, indices): ...": "(indices)",
    "@torch.no_grad()\ndef get_cpu_copy(self, indices): ...": "(indices)",
    "@functools.lru_cache\n@torch.no_grad\ndef get_cpu_copy(self, i): ...": "(i)",
    "@functools.wraps(KVCache.get_cpu_copy)\ndef get_cpu_copy(self, i): ...": "(i)",
    "@registry.register\ndef get_cpu_copy(self, i): ...": "(i)",
    "@OPS.register('copy')\ndef get_cpu_copy(self, i): ...": "(i)",
    "get_cpu_copy = lambda self, i, m=None: None": "(i, m=None)",
    "get_cpu_copy = copy": "(indices, mamba_indices=0, *, where)",
    "def _copy(self, i): ...\nget_cpu_copy = _copy": "(i)",
    "def _copy(self, i): ...\nother = _copy\nget_cpu_copy = other": "(i)",
    "def _copy(self, i): ...\nget_cpu_copy: object = _copy": "(i)",
    "a, get_cpu_copy = 1, copy": "(indices, mamba_indices=0, *, where)",
    "a = get_cpu_copy = copy": "(indices, mamba_indices=0, *, where)",
    "def get_cpu_copy(self, i=torch.int64): ...": "(i=torch.int64)",
    "def get_cpu_copy(self, i=-1.5, j=b'x', k=(1, {2})): ...": "(i=-1.5, j=b'x', k=(1, {2}))",
    "def get_cpu_copy(self, a): ...\ndef get_cpu_copy(self, b): ...": "(b)",
    "def get_cpu_copy(self, i, *, j, k=1, l): ...": "(i, *, j, k=1, l)",
}


@pytest.mark.parametrize(("body", "expected"), SIGNATURES.items())
def test_signature_is_read_without_self(tmp_path: Path, body: str, expected: str) -> None:
    assert signature(defining(tmp_path, body), "x.XPool") == expected


def test_overloads_are_not_the_method(tmp_path: Path) -> None:
    body = """
        @overload
        def get_cpu_copy(self, indices: int) -> int: ...
        @overload
        def get_cpu_copy(self, indices: str, other: str) -> str: ...
        def get_cpu_copy(self, indices, mamba_indices=None): ...
    """
    scan = defining(tmp_path, body)
    assert signature(scan, "x.XPool") == "(indices, mamba_indices=None)"
    assert told(scan) == []


def test_signatures_of_root_and_of_inherited_verbs_are_there(tmp_path: Path) -> None:
    scan = defining(tmp_path, "def get_cpu_copy(self, i): ...")
    assert signature(scan, "pools.KVCache") == "(indices, mamba_indices=None)"
    assert signature(scan, "x.XPool", "move_kv_cache") == "(tgt_loc, src_loc)"
    assert set(scan.methods) == {"engine.pools.KVCache", "engine.x.XPool"}
    assert set(scan.methods["engine.x.XPool"]) == set(scan.verbs)


@pytest.mark.parametrize("decorator", ["property", "functools.cached_property", "cached_property"])
def test_property_is_no_method(tmp_path: Path, decorator: str) -> None:
    scan = defining(tmp_path, f"@{decorator}\ndef get_cpu_copy(self): ...")
    assert told(scan) == [("error", KEYWORD, "x.XPool", "get_cpu_copy", "")]
    assert "is a property, not a method" in scan.findings[0].text


def test_property_with_a_setter_is_no_method(tmp_path: Path) -> None:
    body = """
        @property
        def get_cpu_copy(self): ...
        @get_cpu_copy.setter
        def get_cpu_copy(self, indices, mamba_indices=None): ...
    """
    scan = defining(tmp_path, body)
    assert told(scan) == [("error", KEYWORD, "x.XPool", "get_cpu_copy", "")]


def test_verb_that_is_none_is_no_method(tmp_path: Path) -> None:
    scan = defining(tmp_path, "load_cpu_copy = None\nget_cpu_copy: object = None")
    assert {(s, c, v) for s, c, _, v, _ in told(scan)} == {
        ("error", KEYWORD, "load_cpu_copy"),
        ("error", KEYWORD, "get_cpu_copy"),
    }
    assert {f.text for f in scan.findings} == {
        "get_cpu_copy is None, not a method",
        "load_cpu_copy is None, not a method",
    }


@pytest.mark.parametrize(
    "line",
    [
        "get_cpu_copy = make_copy()",
        "get_cpu_copy = torch.no_grad()(copy)",
        "get_cpu_copy = functools.partialmethod(copy, where=1)",
        "from engine.elsewhere import get_cpu_copy",
        "get_cpu_copy, other = make()",
    ],
)
def test_signature_that_source_does_not_tell_is_a_note(tmp_path: Path, line: str) -> None:
    scan = defining(tmp_path, line)
    assert told(scan) == [("note", KEYWORD, "x.XPool", "get_cpu_copy", "")]
    assert "cannot be decided" in scan.findings[0].text


def test_annotation_without_a_value_defines_nothing(tmp_path: Path) -> None:
    scan = defining(tmp_path, "get_cpu_copy: 'Callable'")
    assert signature(scan, "x.XPool") == "(indices, mamba_indices=None)"
    assert told(scan) == []


def test_broken_parameters_do_not_stop_the_scan(tmp_path: Path) -> None:
    scan = defining(tmp_path, "def get_cpu_copy(self, i, i): ...")
    assert "engine.x.XPool" in scan.classes
    assert [f.cls for f in scan.findings] == ["engine.x.XPool"]


# -- definitions on a condition -----------------------------------------------------------

ON_A_CONDITION = {
    "if": "if {c}:\n    {a}\nelse:\n    {b}",
    "elif": "if {c}:\n    {b}\nelif {c}:\n    {a}\nelse:\n    {b}",
    "if after": "{b}\nif {c}:\n    {a}",
    "if before": "if {c}:\n    {a}\nelse:\n    pass\nx = 1",
    "try": "try:\n    import torch_npu\n    {a}\nexcept ImportError:\n    {b}",
    "except": "try:\n    import torch_npu\n    {b}\nexcept ImportError:\n    {a}",
    "else": "try:\n    import torch_npu\nexcept ImportError:\n    {b}\nelse:\n    {a}",
    "match": "match {c}:\n    case 'npu':\n        {a}\n    case _:\n        {b}",
    "with": "with {c}:\n    {a}",
    "for": "for _ in {c}:\n    {a}",
    "while": "while {c}:\n    {a}\n    break",
    "nested": "if {c}:\n    if {c}:\n        {a}\n    else:\n        {b}\nelse:\n    {b}",
}


@pytest.mark.parametrize("text", ON_A_CONDITION.values(), ids=ON_A_CONDITION)
def test_method_on_a_condition_is_judged(tmp_path: Path, text: str) -> None:
    body = text.format(
        c="torch.device",
        a="def get_cpu_copy(self, indices): ...",
        b="def get_cpu_copy(self, indices, mamba_indices=None): ...",
    )
    scan = defining(tmp_path, body)
    assert told(scan) == [("warning", KEYWORD, "x.XPool", "get_cpu_copy", "mamba_indices")]
    line = (tmp_path / "engine" / "x.py").read_text().splitlines()
    assert line[the_one(scan, KEYWORD).place.line - 1].endswith("(self, indices): ...")


@pytest.mark.parametrize("text", ON_A_CONDITION.values(), ids=ON_A_CONDITION)
def test_class_on_a_condition_is_judged(tmp_path: Path, text: str) -> None:
    above = text.format(
        c="torch.device",
        a="class Wrong(KVCache): get_cpu_copy = wrong",
        b="class Right(KVCache): get_cpu_copy = right",
    )
    functions = "def wrong(self, indices): ...\ndef right(self, indices, mamba_indices=None): ...\n"
    scan = defining(tmp_path, "...", functions + above)
    assert told(scan) == [("warning", KEYWORD, "x.Wrong", "get_cpu_copy", "mamba_indices")]
    assert "x.Wrong" in classes(scan)


@pytest.mark.parametrize("text", ON_A_CONDITION.values(), ids=ON_A_CONDITION)
def test_base_on_a_condition_is_followed(tmp_path: Path, text: str) -> None:
    above = text.format(
        c="torch.device", a="from engine.pools import KVCache as Base", b="Base = object"
    )
    scan = defining(tmp_path, "...", above + "\nclass Wrong(Base):\n    get_cpu_copy = None\n")
    assert "x.Wrong" in classes(scan)
    assert [f.cls for f in scan.of("error")] == ["engine.x.Wrong"]


def test_later_definition_replaces_an_earlier_one(tmp_path: Path) -> None:
    body = """
        def get_cpu_copy(self, indices): ...
        def get_cpu_copy(self, indices, mamba_indices=None): ...
        if True:
            def load_cpu_copy(self, kv_cache_cpu): ...
        def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None): ...
    """
    assert told(defining(tmp_path, body)) == []


def test_two_classes_of_one_name_are_both_judged(tmp_path: Path) -> None:
    above = """
        if torch.cuda.is_available():
            class YPool(KVCache):
                def get_cpu_copy(self, indices): ...
        else:
            class YPool(KVCache):
                def load_cpu_copy(self, kv_cache_cpu, indices): ...
    """
    scan = defining(tmp_path, "...", textwrap.dedent(above))
    assert {verb for _, _, cls, verb, _ in told(scan) if cls == "x.YPool"} == {
        "get_cpu_copy",
        "load_cpu_copy",
    }
    assert classes(scan) == ["x.XPool", "x.YPool"]


# -- places where a class may stand -------------------------------------------------------

WRONG = "def get_cpu_copy(self, indices): ..."
PLACES = {
    "x.make.<locals>.Wrong": f"def make():\n    class Wrong(KVCache):\n        {WRONG}\n",
    "x.Outer.Wrong": f"class Outer:\n    class Wrong(KVCache):\n        {WRONG}\n",
    "x.Outer.make.<locals>.Wrong": (
        f"class Outer:\n    def make(self):\n        class Wrong(KVCache):\n            {WRONG}\n"
    ),
    "x.deep.<locals>.Wrong": (
        "def deep():\n    with a:\n        try:\n            pass\n"
        f"        finally:\n            class Wrong(KVCache):\n                {WRONG}\n"
    ),
    "x.later.<locals>.Wrong": (
        f"async def later():\n    from engine import pools\n"
        f"    class Wrong(pools.KVCache):\n        {WRONG}\n"
    ),
}


@pytest.mark.parametrize(("name", "above"), PLACES.items(), ids=PLACES)
def test_class_is_found_wherever_it_stands(tmp_path: Path, name: str, above: str) -> None:
    scan = defining(tmp_path, "...", above)
    assert told(scan) == [("warning", KEYWORD, name, "get_cpu_copy", "mamba_indices")]


def test_decorated_class_is_found(tmp_path: Path) -> None:
    above = f"@functools.total_ordering\n@register('x')\nclass Wrong(KVCache):\n    {WRONG}\n"
    scan = defining(tmp_path, "...", above)
    assert told(scan) == [("warning", KEYWORD, "x.Wrong", "get_cpu_copy", "mamba_indices")]


def test_methods_do_not_see_the_names_of_their_class(tmp_path: Path) -> None:
    above = """
        class Outer:
            KVCache = object
            def make(self):
                class Wrong(KVCache):
                    def get_cpu_copy(self, indices): ...
    """
    scan = defining(tmp_path, "...", textwrap.dedent(above))
    assert [f.cls for f in scan.findings] == ["engine.x.Outer.make.<locals>.Wrong"]


def test_stub_behind_an_assignment_is_a_stub(tmp_path: Path) -> None:
    body = """
        def _lacking(self, *args, **kwargs):
            raise NotImplementedError
        get_cpu_copy = _lacking
        load_cpu_copy = _lacking
    """
    scan = defining(tmp_path, body, pools=POOLS)
    assert errors(scan) == []
    assert [(s, c) for s, c, *_ in told(scan)] == [("note", STUBS)] * 2
    assert [at(f.place) for f in scan.findings] == ["x.py:12", "x.py:13"]
