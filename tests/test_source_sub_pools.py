"""Pools inside pools: what only their owner reaches is judged by what their owner passes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from source_trees import DEFAULTS, KEYWORD, MHA, Told, callers, scanned, the_one, told

from conformance.signatures.findings import Scan

INDEX = """
from engine.mha import MHAPool
from engine.pools import KVCache

class IndexPool(KVCache):
    def get_cpu_copy(self, indices):
        return self.index_k[indices].cpu()

    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
        self.index_k[indices] = kv_cache_cpu
"""
SCHEDULER = """
def retract(allocator, i, m):
    allocator.get_cpu_copy(i, mamba_indices=m)
"""
OFFLOAD = "return self.index.get_cpu_copy(indices)"


def owner(offload: str = OFFLOAD, made: str = "self.index = IndexPool(size)") -> str:
    """A pool that makes an `IndexPool`, and offloads it so."""
    lines = textwrap.indent(textwrap.dedent(offload).strip("\n"), " " * 8)
    return f"""
class SparsePool(KVCache):
    def __init__(self, size, index_class=None):
        {made}
        self.main = MHAPool(size)

    def get_cpu_copy(self, indices, mamba_indices=None):
{lines}

    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
        self.index.load_cpu_copy(kv_cache_cpu, indices)
"""


def judged(folder: Path, sparse: str, files: Mapping[str, str] | None = None) -> Scan:
    every = {"mha.py": MHA, "sparse.py": INDEX + sparse, "scheduler.py": SCHEDULER}
    return scanned(folder, every | dict(files or {}))


def dropped(severity: str) -> list[Told]:
    return [(severity, KEYWORD, "sparse.IndexPool", "get_cpu_copy", "mamba_indices")]


def test_sub_pool_that_is_reached_without_the_keyword_is_a_note(tmp_path: Path) -> None:
    scan = judged(tmp_path, owner())
    assert told(scan) == dropped("note")
    assert "own" in scan.findings[0].text
    assert scan.findings[0].callers == ()


def test_same_class_is_an_error_where_nobody_owns_it(tmp_path: Path) -> None:
    scan = judged(tmp_path, "")
    assert told(scan) == dropped("error")
    assert callers(scan.findings[0]) == ["scheduler.py:2"]


REACHED = {
    "by keyword": "return self.index.get_cpu_copy(indices, mamba_indices=mamba_indices)",
    "by position": "return self.index.get_cpu_copy(indices, mamba_indices)",
    "on a condition": """
        if mamba_indices is not None:
            return self.index.get_cpu_copy(indices, mamba_indices=mamba_indices)
        return self.index.get_cpu_copy(indices)
    """,
    "by a variable": """
        index = self.index
        return index.get_cpu_copy(indices, mamba_indices=mamba_indices)
    """,
    "in a loop": """
        for pool in (self.main, self.index):
            pool.get_cpu_copy(indices, mamba_indices=mamba_indices)
    """,
    "in a comprehension": """
        pools = [self.main, self.index]
        return [pool.get_cpu_copy(indices, mamba_indices=mamba_indices) for pool in pools]
    """,
    "in an inner function": """
        def copy():
            return self.index.get_cpu_copy(indices, mamba_indices=mamba_indices)
        return copy()
    """,
    "in a lambda": """
        copy = lambda: self.index.get_cpu_copy(indices, mamba_indices=mamba_indices)
        return copy()
    """,
}


@pytest.mark.parametrize("offload", REACHED.values(), ids=REACHED)
def test_sub_pool_that_is_reached_with_the_keyword_is_an_error(
    tmp_path: Path, offload: str
) -> None:
    scan = judged(tmp_path, owner(offload))
    errors = [f for f in scan.of("error") if f.cls == "engine.sparse.IndexPool"]
    assert [f.verb for f in errors] == ["get_cpu_copy"]
    assert {place.path.name for place in errors[0].callers} == {"sparse.py"}


@pytest.mark.parametrize(
    "made", ["self.main = MHAPool(size)", "self.main: MHAPool = make(size)", "main: MHAPool"]
)
def test_another_sub_pool_of_the_owner_may_be_given_the_keyword(tmp_path: Path, made: str) -> None:
    offload = """
        main = self.main.get_cpu_copy(indices, mamba_indices=mamba_indices)
        return main, self.index.get_cpu_copy(indices)
    """
    sparse = owner(offload)
    if made == "main: MHAPool":
        sparse = sparse.replace("self, size,", f"self, size, {made},")
        made = "self.main = main"
    sparse = sparse.replace("self.main = MHAPool(size)", made)
    assert made in sparse
    assert told(judged(tmp_path, sparse)) == dropped("note")


MADE = {
    "by its name": "self.index = IndexPool(size)",
    "with an annotation": "self.index: IndexPool = IndexPool(size)",
    "by a chosen class": "self.index = (index_class or IndexPool)(size)",
    "by a helper": "self.index = self.build(IndexPool, size)",
    "by a keyword": "self.index = self.build(size, cls=IndexPool)",
    "in a list": "self.layers = [IndexPool(size) for _ in range(3)]",
    "by a partial": "self.make = functools.partial(IndexPool, size)",
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_owner_may_make_it_in_any_way(tmp_path: Path, made: str) -> None:
    assert told(judged(tmp_path, owner(made=made))) == dropped("note")


def test_class_may_be_the_default_of_a_parameter(tmp_path: Path) -> None:
    sparse = owner(made="self.index = index_class(size)").replace(
        "index_class=None", "index_class=IndexPool"
    )
    assert told(judged(tmp_path, sparse)) == dropped("note")


def test_owner_may_inherit_what_calls_the_sub_pool(tmp_path: Path) -> None:
    source = """
        class BasePool(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return self.index.get_cpu_copy(indices, mamba_indices=mamba_indices)
            def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None): ...
        class SparsePool(BasePool):
            def __init__(self, size):
                self.index = IndexPool(size)
    """
    assert told(judged(tmp_path, textwrap.dedent(source))) == dropped("error")


ELSEWHERE = {
    "by its name": "from engine.sparse import IndexPool\npool = IndexPool(3)\n",
    "by another name": "from engine.sparse import IndexPool as IP\npool = IP(3)\n",
    "by an alias": "from engine.sparse import IndexPool\nIP = IndexPool\npool = IP(3)\n",
    "by a star": "from engine.sparse import *\npool = IndexPool(3)\n",
    "in its module": "import engine.sparse\npool = engine.sparse.IndexPool(3)\n",
    "in a module of another name": "from engine import sparse as s\npool = s.IndexPool(3)\n",
    "in a table": "from engine.sparse import IndexPool\nPOOLS = {'index': IndexPool}\n",
    "as an argument": "from engine.sparse import IndexPool\nmake(kind=IndexPool)\n",
    "by a class method": "from engine.sparse import IndexPool\npool = IndexPool.build(3)\n",
    "in a function": "def f():\n    from engine.sparse import IndexPool\n    return IndexPool(3)\n",
    "as a default": "from engine.sparse import IndexPool\ndef f(kind=IndexPool): ...\n",
    "as a default keyword": "from engine.sparse import IndexPool\ndef f(*, kind=IndexPool): ...\n",
    "in a class": "from engine.sparse import IndexPool\nclass A:\n    kind = IndexPool\n",
    "in a return": "from engine.sparse import IndexPool\ndef f():\n    return IndexPool\n",
    "below another name": (
        "from engine.sparse import IndexPool\nclass Public(IndexPool): ...\npool = Public(3)\n"
    ),
}


@pytest.mark.parametrize("source", ELSEWHERE.values(), ids=ELSEWHERE)
def test_sub_pool_that_is_made_elsewhere_too_is_an_error(tmp_path: Path, source: str) -> None:
    scan = judged(tmp_path, owner(), {"elsewhere.py": source})
    (error,) = (f for f in scan.of("error") if f.clause == KEYWORD)
    assert callers(error) == ["scheduler.py:2"]


def test_sub_pool_that_is_made_under_the_name_of_another_module_is_an_error(
    tmp_path: Path,
) -> None:
    files = {
        "api.py": "from engine.sparse import IndexPool as Index\n",
        "elsewhere.py": "from engine.api import Index\npool = Index(3)\n",
    }
    assert told(judged(tmp_path, owner(), files)) == dropped("error")


HARMLESS = {
    "an import": "from engine.sparse import IndexPool\n__all__ = ['IndexPool']\n",
    "an annotation": "def f(pool: IndexPool) -> IndexPool:\n    x: IndexPool\n    return pool\n",
    "isinstance": "def f(pool):\n    return isinstance(pool, (int, IndexPool))\n",
    "a cast": "def f(pool):\n    return cast(IndexPool, pool)\n",
    "an attribute": "SIZE = IndexPool.SIZE\n",
    "a comment": "# IndexPool(3) is made by SparsePool\n",
    "a string": "'''IndexPool(3)'''\n",
    "an assertion": "def f(p):\n    assert not isinstance(p, IndexPool), IndexPool.__name__\n",
}


@pytest.mark.parametrize("source", HARMLESS.values(), ids=HARMLESS)
def test_mention_that_makes_nothing_keeps_it_private(tmp_path: Path, source: str) -> None:
    whole = f"from engine.sparse import IndexPool\n{source}"
    assert told(judged(tmp_path, owner(), {"elsewhere.py": whole})) == dropped("note")


def test_class_of_the_same_name_elsewhere_keeps_it_private(tmp_path: Path) -> None:
    source = "class IndexPool: ...\npool = IndexPool()\n"
    assert told(judged(tmp_path, owner(), {"elsewhere.py": source})) == dropped("note")


def test_own_name_inside_the_sub_pool_keeps_it_private(tmp_path: Path) -> None:
    files = INDEX.replace(
        "class IndexPool(KVCache):\n",
        "class IndexPool(KVCache):\n"
        "    def __init__(self, size):\n        super(IndexPool, self).__init__(size)\n\n",
    )
    scan = judged(tmp_path, "", {"sparse.py": files + owner()})
    assert told(scan) == dropped("note")


def test_annotated_sub_pool_of_another_object_is_reached(tmp_path: Path) -> None:
    source = """
        from engine.sparse import SparsePool
        def f(pool: SparsePool, i, m):
            return pool.index.get_cpu_copy(i, mamba_indices=m)
    """
    scan = judged(tmp_path, owner(), {"elsewhere.py": textwrap.dedent(source)})
    assert told(scan) == dropped("error")
    assert callers(the_one(scan, KEYWORD)) == ["elsewhere.py:3"]


def test_every_fault_of_a_private_sub_pool_is_a_note(tmp_path: Path) -> None:
    files = INDEX.replace("self, indices):", "self, indices, mamba_indices=0):")
    scan = judged(tmp_path, "", {"sparse.py": files + owner()})
    assert told(scan) == [("note", DEFAULTS, "sparse.IndexPool", "get_cpu_copy", "mamba_indices")]


def test_parameter_that_the_owner_does_not_fill_is_an_error(tmp_path: Path) -> None:
    files = INDEX.replace("self, indices):", "self, indices, layer, mamba_indices=None):")
    wrong = judged(tmp_path / "wrong", "", {"sparse.py": files + owner()})
    filled = owner("return self.index.get_cpu_copy(indices, 3)")
    right = judged(tmp_path / "right", "", {"sparse.py": files + filled})
    assert {(severity, cls) for severity, _, cls, _, _ in told(wrong)} >= {
        ("error", "sparse.IndexPool")
    }
    assert {severity for severity, *_ in told(right)} == {"note"}
