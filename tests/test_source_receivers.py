"""Whose method a call reaches, as far as source tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_trees import KEYWORD, calling, dropped, told

REACHES = {
    "a parameter without annotation": """
        def f(pool, i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "its own class": """
        def f(pool: DSAPool, i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "the root": """
        def f(pool: KVCache, i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a string": """
        def f(pool: "DSAPool | None", i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a string in Optional": """
        def f(pool: Optional["DSAPool"], i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "Union": """
        def f(pool: Union[MHAPool, DSAPool], i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a bar": """
        def f(pool: MHAPool | DSAPool | None, i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "Annotated": """
        def f(pool: Annotated[DSAPool, MHAPool], i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an alias of a union": """
        AnyPool = Union[MHAPool, DSAPool]
        def f(pool: AnyPool, i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a type variable": """
        P = TypeVar("P", bound=KVCache)
        def f(pool: P, i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a constructor": """
        def f(i, m):
            pool = DSAPool()
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a constructor in place": """
        def f(i, m):
            DSAPool(size=3).get_cpu_copy(i, mamba_indices=m)
    """,
    "a class that is chosen": """
        def f(i, m, wide):
            pool_class = MHAPool if wide else DSAPool
            pool = pool_class()
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a variable that is chosen": """
        def f(i, m, wide):
            if wide:
                pool = MHAPool()
            else:
                pool = DSAPool()
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a walrus": """
        def f(i, m):
            if (pool := DSAPool()) and pool.get_cpu_copy(i, mamba_indices=m):
                pass
    """,
    "a factory": """
        def f(i, m):
            make_pool().get_cpu_copy(i, mamba_indices=m)
    """,
    "an element": """
        def f(pools: list[MHAPool], i, m):
            pools[0].get_cpu_copy(i, mamba_indices=m)
    """,
    "a loop": """
        def f(pools, i, m):
            for pool in pools:
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an attribute that is annotated": """
        class Scheduler:
            pool: "DSAPool"
            def f(self, i, m):
                self.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an attribute from a parameter": """
        class Scheduler:
            def __init__(self, pool: KVCache):
                self.pool = pool
            def f(self, i, m):
                self.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an attribute from a constructor": """
        class Scheduler:
            def __init__(self):
                self.pool = None
            def start(self):
                self.pool = DSAPool()
            def f(self, i, m):
                self.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "one of two assignments": """
        class Scheduler:
            def __init__(self, wide):
                self.pool = MHAPool()
            def narrow(self):
                self.pool = DSAPool()
            def f(self, i, m):
                self.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an assignment to several": """
        class Scheduler:
            def __init__(self, wide):
                self.pool = self.other = DSAPool()
            def f(self, i, m):
                self.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an attribute of an inherited constructor": """
        class Base:
            def __init__(self):
                self.pool = DSAPool()
        class Scheduler(Base):
            def f(self, i, m):
                self.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an attribute that a derived class sets": """
        class Scheduler:
            def __init__(self):
                self.pool = MHAPool()
            def f(self, i, m):
                self.pool.get_cpu_copy(i, mamba_indices=m)
        class SparseScheduler(Scheduler):
            def __init__(self):
                self.pool = DSAPool()
    """,
    "an attribute of an attribute": """
        class Allocator:
            def __init__(self, pool: DSAPool):
                self.pool = pool
        class Scheduler:
            def __init__(self, allocator: Allocator):
                self.allocator = allocator
            def f(self, i, m):
                self.allocator.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a protocol": """
        class CanOffload(Protocol):
            def get_cpu_copy(self, indices, mamba_indices=None): ...
        def f(pool: CanOffload, i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a proxy": """
        class Lazy:
            def __init__(self, make):
                self.make = make
            def __getattr__(self, name):
                return getattr(self.make(), name)
        class Scheduler:
            def __init__(self, make):
                self.pool = Lazy(make)
            def f(self, i, m):
                self.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "the class itself": """
        def f(pool, i, m):
            DSAPool.get_cpu_copy(pool, i, mamba_indices=m)
    """,
    "a dotted name": """
        def f(pool: "engine.pools.KVCache", i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a first parameter of an inner function": """
        class Scheduler:
            def f(self, pools, i, m):
                def copy(pool):
                    return pool.get_cpu_copy(i, mamba_indices=m)
                return [copy(pool) for pool in pools]
    """,
    "self of an outer function": """
        class Scheduler:
            def __init__(self):
                self.pool = DSAPool()
            def f(self, i, m):
                def later():
                    return self.pool.get_cpu_copy(i, mamba_indices=m)
                return later
    """,
    "an element of a name that hides another": """
        pool = MHAPool()
        def f(pools, i, m):
            return [pool.get_cpu_copy(i, mamba_indices=m) for pool in pools]
    """,
    "a loop variable that hides another": """
        pool = MHAPool()
        def f(pools, i, m):
            for pool in pools:
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a with statement that hides another": """
        pool = MHAPool()
        def f(opened, i, m):
            with opened() as pool:
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a parameter of a lambda that hides another": """
        pool = MHAPool()
        def f(pools, i, m):
            return map(lambda pool: pool.get_cpu_copy(i, mamba_indices=m), pools)
    """,
}


@pytest.mark.parametrize("source", REACHES.values(), ids=REACHES)
def test_call_that_may_reach_the_class_is_its_fault(tmp_path: Path, source: str) -> None:
    finding = dropped(calling(tmp_path, source))
    assert (finding.cls, finding.severity) == ("engine.dsa.DSAPool", "error")
    assert len(finding.callers) == 1
    (place,) = finding.callers
    line = place.path.read_text(encoding="utf-8").splitlines()[place.line - 1]
    assert "mamba_indices=m" in line


MISSES = {
    "another class": """
        def f(pool: MHAPool, i, m):
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a constructor of another class": """
        def f(i, m):
            pool = MHAPool()
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an attribute of another class": """
        class Scheduler:
            def __init__(self):
                self.pool = MHAPool()
            def f(self, i, m):
                self.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an attribute with the annotation of another class": """
        class Scheduler:
            def __init__(self, pool):
                self.pool: MHAPool = pool
            def f(self, i, m):
                self.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a class that is no pool": """
        class Allocator:
            def get_cpu_copy(self, indices, mamba_indices=None): ...
        def f(allocator: Allocator, i, m):
            allocator.get_cpu_copy(i, mamba_indices=m)
    """,
    "a function of a module": """
        from engine import ops
        def f(i, m):
            ops.get_cpu_copy(i, mamba_indices=m)
    """,
    "another class by its name": """
        def f(pool, i, m):
            MHAPool.get_cpu_copy(pool, i, mamba_indices=m)
    """,
    "super of another class": """
        class Wide(MHAPool):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices, mamba_indices=mamba_indices)
    """,
    "super that begins after the class": """
        class Wide(DSAPool):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super(DSAPool, self).get_cpu_copy(indices, mamba_indices=mamba_indices)
    """,
    "self of another class": """
        class Wide(MHAPool):
            def offload(self, i, m):
                return self.get_cpu_copy(i, mamba_indices=m)
    """,
    "a variable that is the class only later": """
        def f(i, m):
            pool = MHAPool()
            pool.get_cpu_copy(i, mamba_indices=m)
            pool = DSAPool()
            pool.get_cpu_copy(i)
    """,
    "isinstance of another class": """
        def f(pool: KVCache, i, m):
            if isinstance(pool, MHAPool):
                return pool.get_cpu_copy(i, mamba_indices=m)
            return pool.get_cpu_copy(i)
    """,
    "isinstance of another class, without annotation": """
        def f(pool, i, m):
            if isinstance(pool, MHAPool):
                return pool.get_cpu_copy(i, mamba_indices=m)
            return pool.get_cpu_copy(i)
    """,
    "an ask for the parameter": """
        import inspect
        def f(pool, i, m):
            if "mamba_indices" in inspect.signature(pool.get_cpu_copy).parameters:
                return pool.get_cpu_copy(i, mamba_indices=m)
            return pool.get_cpu_copy(i)
    """,
}


@pytest.mark.parametrize("source", MISSES.values(), ids=MISSES)
def test_call_that_cannot_reach_the_class_is_not_its_fault(tmp_path: Path, source: str) -> None:
    scan = calling(tmp_path, source, ops="def get_cpu_copy(indices, mamba_indices=None): ...")
    finding = dropped(scan)
    assert (finding.cls, finding.severity) == ("engine.dsa.DSAPool", "warning")
    assert told(scan) == [
        ("warning", KEYWORD, "dsa.DSAPool", "get_cpu_copy", "mamba_indices"),
    ]
