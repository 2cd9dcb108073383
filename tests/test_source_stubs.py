"""Verbs that only raise: inherited, deliberate, and reached by a caller."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_trees import BODIES, MHA, POOLS, STUBS, at, callers, scanned, the_one, told

PLAIN = """
from engine.pools import KVCache

class PlainPool(KVCache):
    def move_kv_cache(self, tgt_loc, src_loc): ...
"""


def stubs(cls: str, severity: str, *verbs: str) -> list[tuple[str, str, str, str, str]]:
    return [(severity, STUBS, cls, verb, "") for verb in verbs]


BOTH = ("get_cpu_copy", "load_cpu_copy")


def test_inherited_stub_is_a_warning(tmp_path: Path) -> None:
    scan = scanned(tmp_path, {"mha.py": MHA, "plain.py": PLAIN})
    assert told(scan) == stubs("plain.PlainPool", "warning", *BOTH)
    assert {at(f.place) for f in scan.findings} == {"plain.py:3"}
    assert "KVCache" in scan.findings[0].text


def test_stub_that_a_caller_is_sure_to_reach_is_an_error(tmp_path: Path) -> None:
    source = """
        from engine.plain import PlainPool
        class Scheduler:
            def __init__(self):
                self.pool = PlainPool()
            def retract(self, i):
                return self.pool.get_cpu_copy(i)
    """
    scan = scanned(tmp_path, {"plain.py": PLAIN, "scheduler.py": source})
    assert the_one(scan, STUBS, "get_cpu_copy").severity == "error"
    assert callers(the_one(scan, STUBS, "get_cpu_copy")) == ["scheduler.py:6"]
    assert the_one(scan, STUBS, "load_cpu_copy").severity == "warning"


def test_stub_of_a_class_far_below_is_an_error_all_the_same(tmp_path: Path) -> None:
    source = """
        from engine.plain import PlainPool
        class DraftPool(PlainPool): ...
        def retract(i):
            DraftPool().get_cpu_copy(i)
    """
    scan = scanned(tmp_path, {"plain.py": PLAIN, "draft.py": source})
    reached = [f for f in scan.of("error") if f.verb == "get_cpu_copy"]
    assert [callers(f) for f in reached] == [["draft.py:4"]]


def test_inherited_stub_is_told_once(tmp_path: Path) -> None:
    source = "from engine.plain import PlainPool\nclass DraftPool(PlainPool): ...\n"
    scan = scanned(tmp_path, {"plain.py": PLAIN, "draft.py": source})
    assert told(scan) == stubs("plain.PlainPool", "warning", *BOTH)


RAISES = {
    "plain": "raise NotImplementedError",
    "called": "raise NotImplementedError('no offload')",
    "with a cause": "raise NotImplementedError() from None",
    "dotted": "raise builtins.NotImplementedError",
    "documented": "'''Not here.'''\n        raise NotImplementedError",
    "an ellipsis first": "...\n        raise NotImplementedError",
}


@pytest.mark.parametrize("body", RAISES.values(), ids=RAISES)
def test_deliberate_raise_is_a_note(tmp_path: Path, body: str) -> None:
    source = MHA.replace("return self.k_buffer[indices].cpu()", body)
    assert body in source
    scan = scanned(tmp_path, {"mha.py": source}, pools=BODIES)
    assert told(scan) == stubs("mha.MHAPool", "note", "get_cpu_copy")
    assert "lacks" in scan.findings[0].text
    assert at(scan.findings[0].place) == "mha.py:4"


def test_deliberate_raise_is_not_told_again_of_a_subclass(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class RaisingPool(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=None):
                raise NotImplementedError
        class DraftPool(RaisingPool): ...
    """
    scan = scanned(tmp_path, {"raising.py": source}, pools=BODIES)
    assert told(scan) == stubs("raising.RaisingPool", "note", "get_cpu_copy")


NO_STUBS = {
    "something else": "raise ValueError('no')",
    "a condition": "if mamba_indices is None:\n            raise NotImplementedError",
    "work first": "self.flush()\n        raise NotImplementedError",
    "nothing": "...",
    "raise of nothing": "raise",
    "no raise": "return NotImplementedError",
}


@pytest.mark.parametrize("body", NO_STUBS.values(), ids=NO_STUBS)
def test_method_that_does_something_is_no_stub(tmp_path: Path, body: str) -> None:
    pools = BODIES.replace("return self.k_buffer[indices], mamba_indices", body)
    assert body in pools
    assert told(scanned(tmp_path, {"plain.py": PLAIN}, pools=pools)) == []


ABSTRACT = """
import abc
from abc import ABC, abstractmethod

class KVCache{bases}:
    @{decorator}
    def get_cpu_copy(self, indices, mamba_indices=None):
        raise NotImplementedError

    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None): ...
"""


@pytest.mark.parametrize("bases", ["(ABC)", "(abc.ABC)", "(metaclass=abc.ABCMeta)"])
@pytest.mark.parametrize("decorator", ["abstractmethod", "abc.abstractmethod"])
def test_class_that_cannot_be_made_is_not_accused(
    tmp_path: Path, bases: str, decorator: str
) -> None:
    pools = ABSTRACT.format(bases=bases, decorator=decorator)
    source = """
        from engine.pools import KVCache
        class Middle(KVCache): ...
        class Leaf(Middle):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return self.k_buffer[indices]
    """
    assert told(scanned(tmp_path, {"leaf.py": source}, pools=pools)) == []


def test_abstract_method_of_a_plain_class_stops_nobody(tmp_path: Path) -> None:
    pools = ABSTRACT.format(bases="", decorator="abstractmethod")
    scan = scanned(tmp_path, {"plain.py": PLAIN}, pools=pools)
    assert told(scan) == stubs("plain.PlainPool", "warning", "get_cpu_copy")


def test_concrete_class_below_an_abstract_one_is_told(tmp_path: Path) -> None:
    source = """
        import abc
        from engine.pools import KVCache
        class Middle(KVCache, abc.ABC):
            @abc.abstractmethod
            def layers(self): ...
        class Leaf(Middle):
            def layers(self): ...
    """
    assert told(scanned(tmp_path, {"leaf.py": source})) == stubs("leaf.Leaf", "warning", *BOTH)


def test_mixin_may_fill_a_stub(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class CopyMixin:
            def get_cpu_copy(self, indices, mamba_indices=None):
                return self.k_buffer[indices]
            def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
                self.k_buffer[indices] = kv_cache_cpu
        class Before(CopyMixin, KVCache): ...
        class Behind(KVCache, CopyMixin): ...
    """
    assert told(scanned(tmp_path, {"mixed.py": source})) == stubs("mixed.Behind", "warning", *BOTH)


@pytest.mark.parametrize(
    "line",
    ["get_cpu_copy = MHAPool.get_cpu_copy", "get_cpu_copy = copy", "get_cpu_copy = make()"],
)
def test_assignment_fills_a_stub(tmp_path: Path, line: str) -> None:
    source = f"""
        from engine.mha import MHAPool
        from engine.pools import KVCache
        def copy(self, indices, mamba_indices=None):
            return self.k_buffer[indices]
        class FilledPool(KVCache):
            {line}
            load_cpu_copy = MHAPool.load_cpu_copy
    """
    scan = scanned(tmp_path, {"mha.py": MHA, "filled.py": source}, pools=POOLS)
    assert told(scan, STUBS) == []
    assert all(severity == "note" for severity, *_ in told(scan))
