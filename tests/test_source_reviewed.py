"""Cases that a reviewer found: sub-pools that are handed out, calls that may fail, and more."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from source_trees import (
    BODIES,
    COVERED,
    DEFAULTS,
    DSA,
    FORWARDED,
    KEYWORD,
    MHA,
    POOLS,
    STUBS,
    calling,
    dropped,
    scanned,
    the_one,
    told,
)

RETRACT = "def retract(pool, i, m):\n    return pool.get_cpu_copy(i, mamba_indices=m)\n"
INDEX = """
from engine.mha import MHAPool
from engine.pools import KVCache

class IndexPool(KVCache):
    def get_cpu_copy(self, indices): ...
    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None): ...

class SparsePool(MHAPool):
    def __init__(self, size):
        self.index = IndexPool(size)
"""
HANDED_OUT = {
    "by a method": "    def make(self):\n        return IndexPool(3)\n",
    "by a static method": "    @staticmethod\n    def make():\n        pool = IndexPool(3)\n",
    "by a class method": "    @classmethod\n    def make(cls):\n        cls.pool = IndexPool(3)\n",
    "by a generator": "    def each(self):\n        yield IndexPool(3)\n",
}


@pytest.mark.parametrize("method", HANDED_OUT.values(), ids=HANDED_OUT)
def test_sub_pool_that_is_handed_out_may_be_reached_by_all(tmp_path: Path, method: str) -> None:
    files = {"mha.py": MHA, "sparse.py": INDEX + method, "scheduler.py": RETRACT}
    assert the_one(scanned(tmp_path, files), KEYWORD).severity == "error"


def test_sub_pool_behind_an_attribute_of_its_owner_may_be_reached(tmp_path: Path) -> None:
    scheduler = "def f(owner, i, m):\n    owner.index.get_cpu_copy(i, mamba_indices=m)\n"
    files = {"mha.py": MHA, "sparse.py": INDEX, "scheduler.py": scheduler}
    finding = the_one(scanned(tmp_path, files), KEYWORD)
    assert finding.severity == "error"
    assert finding.maybe == finding.callers


def test_callers_that_are_decided_come_first(tmp_path: Path) -> None:
    source = """
        def a(pool, i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
        def b(pool: DSAPool, i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """
    finding = dropped(calling(tmp_path, source))
    assert [place.line for place in finding.callers] == [8, 6]
    assert [place.line for place in finding.maybe] == [6]


def severity_within(tmp_path: Path, body: str) -> str:
    """Of the keyword that is dropped, where the only call of the verb stands in `body`."""
    call = "pool.get_cpu_copy(i, mamba_indices=m)"
    source = f"def f(pool, i, m):\n    {body.replace('CALL', call)}\n"
    return dropped(calling(tmp_path, source)).severity


SURVIVED = {
    "an expected error": "with pytest.raises(TypeError):\n        CALL",
    "a suppressed error": "with suppress(ValueError, TypeError):\n        CALL",
    "a fallback": "try:\n        CALL\n    except Exception:\n        pool.get_cpu_copy(i)",
    "a fallback of everything": "try:\n        CALL\n    except:\n        pool.get_cpu_copy(i)",
    "a comparison of its type": "if type(pool) is MHAPool:\n        CALL",
    "a class pattern": "match pool:\n        case MHAPool():\n            CALL",
    "a variable": "is_mha = isinstance(pool, MHAPool)\n    if is_mha:\n        CALL",
}


@pytest.mark.parametrize("body", SURVIVED.values(), ids=SURVIVED)
def test_call_that_cannot_reach_it_or_may_fail_is_no_fault(tmp_path: Path, body: str) -> None:
    assert severity_within(tmp_path, body) == "warning"


NOT_SURVIVED = {
    "another error": "with pytest.raises(ValueError):\n        CALL",
    "a handler that logs": "try:\n        CALL\n    except Exception:\n        log.error(i)",
    "another type": "if type(pool) is DSAPool:\n        CALL",
    "another class pattern": "match pool:\n        case DSAPool():\n            CALL",
}


@pytest.mark.parametrize("body", NOT_SURVIVED.values(), ids=NOT_SURVIVED)
def test_call_that_fails_loudly_is_a_fault(tmp_path: Path, body: str) -> None:
    assert severity_within(tmp_path, body) == "error"


SWALLOWED = {
    "the first of all": "*args, **kwargs:return super().get_cpu_copy(args[0])",
    "all but the rest": "*args, **kwargs:return super().get_cpu_copy(*args)",
    "taken out": (
        "indices, **kwargs:kwargs.pop('mamba_indices', None)\n"
        "        return super().get_cpu_copy(indices, **kwargs)"
    ),
    "nothing instead": (
        "indices, mamba_indices=None:return super().get_cpu_copy(indices, mamba_indices=None)"
    ),
}


@pytest.mark.parametrize("method", SWALLOWED.values(), ids=SWALLOWED)
def test_parameter_that_is_swallowed_is_dropped(tmp_path: Path, method: str) -> None:
    parameters, _, body = method.partition(":")
    source = (
        "from engine.pools import KVCache\nclass DraftPool(KVCache):\n"
        f"    def get_cpu_copy(self, {parameters}):\n        {body}\n"
    )
    scan = scanned(tmp_path, {"draft.py": source}, pools=BODIES)
    assert told(scan, FORWARDED) == [
        ("warning", FORWARDED, "draft.DraftPool", "get_cpu_copy", "mamba_indices")
    ]


@pytest.mark.parametrize(
    "method",
    [
        "*args, **kwargs:return super().get_cpu_copy(*args, **kwargs)",
        "indices, **kwargs:return super().get_cpu_copy(indices, **kwargs)",
        "indices, mamba_indices=None:if mamba_indices is not None:\n            raise ValueError\n"
        "        return super().get_cpu_copy(indices)",
    ],
)
def test_parameter_that_is_handed_on_or_refused_is_not(tmp_path: Path, method: str) -> None:
    parameters, _, body = method.partition(":")
    source = (
        "from engine.pools import KVCache\nclass DraftPool(KVCache):\n"
        f"    def get_cpu_copy(self, {parameters}):\n        {body}\n"
    )
    assert told(scanned(tmp_path, {"draft.py": source}, pools=BODIES), FORWARDED) == []


@pytest.mark.parametrize(
    ("root", "here", "differs"),
    [
        ("None", "NONE", False),
        ("DEFAULT", "consts.DEFAULT", False),
        ("DEFAULT", "OTHER", True),
        ("3", "1 + 2", True),
        ("make()", "make()", False),
    ],
)
def test_default_differs_only_where_that_is_sure(
    tmp_path: Path, root: str, here: str, differs: bool
) -> None:
    pools = BODIES.replace("mamba_indices=None", f"mamba_indices={root}")
    pool = MHA.replace("mamba_indices=None", f"mamba_indices={here}")
    found = told(scanned(tmp_path, {"mha.py": pool}, pools=pools), DEFAULTS)
    assert [verb for _, _, _, verb, _ in found] == (
        ["get_cpu_copy", "load_cpu_copy"] if differs else []
    )


def test_file_that_cannot_be_read_is_told_at_its_line(tmp_path: Path) -> None:
    broken = textwrap.dedent(DSA) + "    def move_kv_cache(self,\n"
    finding = the_one(scanned(tmp_path, {"dsa.py": broken}), COVERED)
    assert finding.place.line == len(broken.lstrip("\n").splitlines())
    assert f"line {finding.place.line}" in finding.text
    assert "(read as Python 3." in finding.text


def test_abstract_class_lacks_nothing(tmp_path: Path) -> None:
    source = """
        import abc
        from engine.pools import KVCache
        class Interface(KVCache, abc.ABC):
            @abc.abstractmethod
            def get_cpu_copy(self, indices, mamba_indices=None):
                raise NotImplementedError
            def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
                raise NotImplementedError
    """
    assert told(scanned(tmp_path, {"x.py": source}, pools=POOLS), STUBS) == []
