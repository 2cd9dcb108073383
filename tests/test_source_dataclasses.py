"""An `__init__` that `dataclass` makes, taken as a verb."""

from __future__ import annotations

import sys
import textwrap
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import ModuleType

import pytest
from source_trees import KEYWORD, REQUIRES, scanned, told

HEAD = """
import dataclasses
from dataclasses import KW_ONLY, InitVar, dataclass, field
import typing
from typing import ClassVar
"""
CASES = {
    "plain": "@dataclass\nclass Pool(KVCache):\n    a: int\n    b: int = 3",
    "called": "@dataclass(frozen=True)\nclass Pool(KVCache):\n    a: int = 1",
    "dotted": "@dataclasses.dataclass\nclass Pool(KVCache):\n    a: int = 1",
    "not decorated": "class Pool(KVCache):\n    a: int = 1",
    "no init": "@dataclass(init=False)\nclass Pool(KVCache):\n    a: int = 1",
    "own init": (
        "@dataclass\nclass Pool(KVCache):\n    a: int = 1\n    def __init__(self, z=1): ..."
    ),
    "keyword-only": "@dataclass(kw_only=True)\nclass Pool(KVCache):\n    a: int\n    b: int = 1",
    "keyword-only from here": (
        "@dataclass\nclass Pool(KVCache):\n    a: int\n    _: KW_ONLY\n    b: int = 1\n    c: int"
    ),
    "dotted keyword-only": (
        "@dataclass\nclass Pool(KVCache):\n    a: int\n    _: dataclasses.KW_ONLY\n    b: int"
    ),
    "keyword-only field": (
        "@dataclass\nclass Pool(KVCache):\n"
        "    a: int = field(kw_only=True)\n    b: int = 2\n    c: int = field(default=1)"
    ),
    "field that is not keyword-only": (
        "@dataclass(kw_only=True)\nclass Pool(KVCache):\n"
        "    a: int\n    b: int = field(kw_only=False)"
    ),
    "fields": (
        "@dataclass\nclass Pool(KVCache):\n    a: int = field()\n"
        "    b: int = field(default=3)\n    c: int = dataclasses.field(default=None)\n"
        "    d: int = field(init=False)\n    e: int = field(repr=False, default=0)"
    ),
    "factories": "@dataclass\nclass Pool(KVCache):\n    a: list = field(default_factory=list)",
    "class variables": (
        "@dataclass\nclass Pool(KVCache):\n    a: ClassVar[int] = 1\n    b: ClassVar = 2\n"
        "    c: typing.ClassVar[int]\n    d: 'ClassVar[int]' = 1\n    e: int = 5\n    f = 6"
    ),
    "init variables": (
        "@dataclass\nclass Pool(KVCache):\n    a: InitVar[int]\n    b: InitVar[int] = 2"
    ),
    "inheritance": (
        "@dataclass\nclass Base(KVCache):\n    a: int\n    b: int = 2\n"
        "@dataclass\nclass Pool(Base):\n    c: int = 3\n    a: int = 4"
    ),
    "inheritance without a decorator": (
        "@dataclass\nclass Base(KVCache):\n    a: int\n    b: int = 2\n"
        "class Pool(Base):\n    c: int = 3"
    ),
    "a base without a decorator": (
        "class Base(KVCache):\n    a: int\n@dataclass\nclass Pool(Base):\n    c: int = 3"
    ),
    "a base without an init": (
        "@dataclass(init=False)\nclass Base(KVCache):\n    a: int\n"
        "@dataclass\nclass Pool(Base):\n    c: int = 3"
    ),
    "an init in a base": (
        "@dataclass\nclass Base(KVCache):\n    a: int = 1\n    def __init__(self, z): ...\n"
        "@dataclass\nclass Pool(Base):\n    c: int = 3"
    ),
    "two bases": (
        "@dataclass\nclass Mixin:\n    m: int = 1\n    b: int = 1\n"
        "@dataclass\nclass Base(KVCache):\n    b: int = 2\n"
        "@dataclass\nclass Pool(Mixin, Base):\n    c: int = 3"
    ),
    "keyword-only base": (
        "@dataclass(kw_only=True)\nclass Base(KVCache):\n    a: int = 1\n"
        "@dataclass\nclass Pool(Base):\n    c: int"
    ),
    "a method in between": (
        "@dataclass\nclass Pool(KVCache):\n    a: int\n    def b(self): ...\n    c: int = 1"
    ),
}
ROOT_BODY = "class KVCache:\n    def get_cpu_copy(self): ...\n    def __init__(self, a=1): ...\n"


def live(source: str) -> Signature:
    """The signature, without self and annotations, of `Pool.__init__` of executed source."""
    module = ModuleType("live_pools")
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, "live_pools", "exec", dont_inherit=True), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    _, *parameters = signature(module.__dict__["Pool"].__init__).parameters.values()
    return Signature([p.replace(annotation=Parameter.empty) for p in parameters])


@pytest.mark.parametrize("body", CASES.values(), ids=CASES)
def test_init_has_the_signature_of_the_running_class(tmp_path: Path, body: str) -> None:
    head = HEAD.lstrip()
    source = f"{head}from engine.pools import KVCache\n{body}\n"
    scan = scanned(tmp_path, {"x.py": source}, pools=ROOT_BODY, verbs=("__init__", "get_cpu_copy"))
    found = scan.methods["engine.x.Pool"]["__init__"]
    assert str(found) == str(live(f"{head}{ROOT_BODY}{body}\n"))


def test_init_of_a_dataclass_is_judged(tmp_path: Path) -> None:
    pools = """
        class KVCache:
            def __init__(self, size, dtype=None): ...
            def clear(self): ...
    """
    source = """
        from dataclasses import dataclass
        from engine.pools import KVCache
        @dataclass
        class Right(KVCache):
            size: int
            dtype: str = None
        @dataclass
        class Wrong(KVCache):
            size: int
            layers: int
        @dataclass
        class Below(Wrong):
            def clear(self): ...
    """
    scan = scanned(
        tmp_path, {"x.py": textwrap.dedent(source)}, pools=pools, verbs=("__init__", "clear")
    )
    assert told(scan, KEYWORD, REQUIRES) == [
        ("error", REQUIRES, "x.Wrong", "__init__", "layers"),
        ("error", REQUIRES, "x.Below", "__init__", "layers"),
        ("warning", KEYWORD, "x.Wrong", "__init__", "dtype"),
        ("warning", KEYWORD, "x.Below", "__init__", "dtype"),
    ]


def test_fields_in_a_wrong_order_do_not_stop_the_scan(tmp_path: Path) -> None:
    source = """
        from dataclasses import dataclass
        from engine.pools import KVCache
        @dataclass
        class Wrong(KVCache):
            size: int = 1
            layers: int
    """
    scan = scanned(tmp_path, {"x.py": source}, pools=ROOT_BODY, verbs=("__init__", "get_cpu_copy"))
    assert told(scan) == [("note", KEYWORD, "x.Wrong", "__init__", "")]
