"""Calls through `super()` and `self`, in mixins and diamonds, and calls that reach a stub."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_trees import (
    BODIES,
    DSA,
    IMPORTS,
    KEYWORD,
    MHA,
    STUBS,
    callers,
    calling,
    dropped,
    scanned,
    the_one,
    told,
)


def test_super_of_the_faulty_class_is_its_fault(tmp_path: Path) -> None:
    source = """
        class Wide(DSAPool):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices, mamba_indices=mamba_indices)
    """
    finding = dropped(calling(tmp_path, source))
    assert finding.severity == "error"
    assert callers(finding) == ["scheduler.py:7"]


def test_super_of_a_mixin_reaches_what_stands_behind_it(tmp_path: Path) -> None:
    source = """
        class LogMixin:
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices, mamba_indices=mamba_indices)
        class Logged(LogMixin, DSAPool): ...
    """
    assert callers(dropped(calling(tmp_path, source))) == ["scheduler.py:7"]


def test_super_of_a_mixin_that_is_a_base_on_a_condition(tmp_path: Path) -> None:
    source = """
        class LogMixin:
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices, mamba_indices=mamba_indices)
        class Plain: ...
        class Logged(LogMixin if DEBUG else Plain, DSAPool): ...
    """
    assert callers(dropped(calling(tmp_path, source))) == ["scheduler.py:7"]


def test_super_in_a_diamond_reaches_the_next_class_in_line(tmp_path: Path) -> None:
    source = """
        class Logged(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices, mamba_indices=mamba_indices)
        class Both(Logged, DSAPool): ...
    """
    assert callers(dropped(calling(tmp_path, source))) == ["scheduler.py:7"]


def test_self_of_a_mixin_is_every_pool_that_has_it(tmp_path: Path) -> None:
    source = """
        class RetractMixin:
            def retract(self, i, m):
                return self.get_cpu_copy(i, mamba_indices=m)
        class Retracting(RetractMixin, DSAPool): ...
    """
    assert callers(dropped(calling(tmp_path, source))) == ["scheduler.py:7"]


def test_self_of_the_root_is_every_pool(tmp_path: Path) -> None:
    retract = "\n    def retract(self, i, m):\n        self.get_cpu_copy(i, mamba_indices=m)\n"
    finding = dropped(calling(tmp_path, "", pools=BODIES + retract))
    assert callers(finding) == ["pools.py:12"]


def test_two_roots_of_one_name_are_not_confused(tmp_path: Path) -> None:
    other = """
        class KVCache:
            def get_cpu_copy(self, indices, mamba_indices=None): ...
            def load_cpu_copy(self, kv_cache_cpu, indices): ...
        class OtherPool(KVCache):
            def get_cpu_copy(self, indices): ...
        def f(pool: KVCache, i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """
    scan = calling(tmp_path, "", other=other)
    assert told(scan) == [("warning", KEYWORD, "dsa.DSAPool", "get_cpu_copy", "mamba_indices")]
    assert scan.classes == ("engine.dsa.DSAPool", "engine.mha.MHAPool")


# -- whether a caller is sure to reach a stub ---------------------------------------------

PLAIN = "\nclass PlainPool(KVCache): ...\n"


@pytest.mark.parametrize(
    ("body", "severity"),
    [
        ("pool = PlainPool()\n    pool.get_cpu_copy(i)", "error"),
        ("pool.get_cpu_copy(i)", "warning"),
        ("if hasattr(pool, 'get_cpu_copy'):\n        pool.get_cpu_copy(i)", "warning"),
        ("pool = MHAPool()\n    pool.get_cpu_copy(i)", "warning"),
    ],
    ids=["made here", "given", "asked for", "another"],
)
def test_stub_is_an_error_where_a_caller_is_sure_to_reach_it(
    tmp_path: Path, body: str, severity: str
) -> None:
    source = IMPORTS + PLAIN + f"def f(pool, i):\n    {body}\n"
    scan = scanned(tmp_path, {"mha.py": MHA, "dsa.py": DSA, "scheduler.py": source})
    assert the_one(scan, STUBS, "get_cpu_copy").severity == severity
    assert the_one(scan, STUBS, "load_cpu_copy").severity == "warning"
