"""What a receiver is at the place of the call: after assignments, and behind tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_trees import KEYWORD, calling, dropped, told

GUARDED = {
    "isinstance of it": """
        def f(pool, i, m):
            if isinstance(pool, DSAPool):
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "isinstance of one of several": """
        def f(pool: MHAPool, i, m):
            if isinstance(pool, (MHAPool, DSAPool)):
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "isinstance or something else": """
        def f(pool, i, m, always):
            if always or isinstance(pool, MHAPool):
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "isinstance of a part": """
        def f(pool, i, m):
            if isinstance(pool.host, MHAPool):
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "isinstance of what it returns": """
        def f(allocator, i, m):
            if isinstance(allocator.get_kvcache(), MHAPool):
                allocator.get_cpu_copy(i, mamba_indices=m)
    """,
    "isinstance of another variable": """
        def f(pool, other, i, m):
            if isinstance(other, MHAPool):
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "isinstance before a change": """
        def f(pool, i, m):
            if isinstance(pool, MHAPool):
                pool = pool.inner
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "return before a change": """
        def f(pool, other, i, m):
            if isinstance(pool, DSAPool):
                return
            pool = other
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a test that does not leave": """
        def f(pool, i, m):
            if isinstance(pool, DSAPool):
                print(pool)
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "not isinstance": """
        def f(pool, i, m):
            if not isinstance(pool, MHAPool):
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "the rest of isinstance": """
        def f(pool, i, m):
            if isinstance(pool, MHAPool):
                pass
            elif pool:
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "hasattr": """
        def f(pool, i, m):
            if hasattr(pool, "get_cpu_copy"):
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a look at another parameter": """
        import inspect
        def f(pool, i, m):
            if "indices" in inspect.signature(pool.get_cpu_copy).parameters:
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
}


@pytest.mark.parametrize("source", GUARDED.values(), ids=GUARDED)
def test_guard_that_lets_the_class_through_does_not_help(tmp_path: Path, source: str) -> None:
    finding = dropped(calling(tmp_path, source))
    assert (finding.cls, finding.severity) == ("engine.dsa.DSAPool", "error")
    assert len(finding.callers) == 1


KEPT_OUT = {
    "return before": """
        def f(pool, i, m):
            if isinstance(pool, DSAPool):
                return pool.get_cpu_copy(i)
            return pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "else": """
        def f(pool, i, m):
            if isinstance(pool, DSAPool):
                pool.get_cpu_copy(i)
            else:
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an expression": """
        def f(pool, i, m):
            return pool.get_cpu_copy(i, mamba_indices=m) if isinstance(pool, MHAPool) else None
    """,
    "an and": """
        def f(pool, i, m):
            return isinstance(pool, MHAPool) and pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "not and or": """
        def f(pool, i, m):
            return not isinstance(pool, MHAPool) or pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an assertion": """
        def f(pool, i, m):
            assert isinstance(pool, MHAPool), pool
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an attribute": """
        class Scheduler:
            def f(self, i, m):
                if not isinstance(self.pool, MHAPool):
                    raise TypeError
                self.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a comprehension": """
        def f(pools, i, m):
            return [p.get_cpu_copy(i, mamba_indices=m) for p in pools if isinstance(p, MHAPool)]
    """,
    "a loop that goes on": """
        def f(pools, i, m):
            for pool in pools:
                if isinstance(pool, DSAPool):
                    continue
                pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a look at the parameters": """
        import inspect
        def f(pool, i, m):
            if "mamba_indices" not in inspect.signature(pool.get_cpu_copy).parameters:
                return pool.get_cpu_copy(i)
            return pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a dictionary after a look at the parameters": """
        import inspect
        def f(pool, i, m):
            kwargs = {}
            if "mamba_indices" in inspect.signature(pool.get_cpu_copy).parameters:
                kwargs["mamba_indices"] = m
            return pool.get_cpu_copy(i, **kwargs)
    """,
}


@pytest.mark.parametrize("source", KEPT_OUT.values(), ids=KEPT_OUT)
def test_guard_that_keeps_the_class_out_is_believed(tmp_path: Path, source: str) -> None:
    scan = calling(tmp_path, source)
    assert told(scan) == [("warning", KEYWORD, "dsa.DSAPool", "get_cpu_copy", "mamba_indices")]


# -- assignments --------------------------------------------------------------------------

CHANGES = {
    "in a block": """
        def f(i, m, lock):
            with lock:
                pool = MHAPool()
                pool.get_cpu_copy(i, mamba_indices=m)
                pool = DSAPool()
                pool.get_cpu_copy(i)
    """,
    "on one branch": """
        def f(i, m, wide):
            if wide:
                pool = MHAPool()
                pool.get_cpu_copy(i, mamba_indices=m)
            else:
                pool = DSAPool()
                pool.get_cpu_copy(i)
    """,
    "in a comprehension": """
        def f(i, m):
            pool = MHAPool()
            copies = [pool.get_cpu_copy(j, mamba_indices=m) for j in i]
            pool = DSAPool()
            return copies, pool.get_cpu_copy(i)
    """,
}


@pytest.mark.parametrize("source", CHANGES.values(), ids=CHANGES)
def test_variable_is_what_it_was_at_the_call(tmp_path: Path, source: str) -> None:
    assert dropped(calling(tmp_path, source)).severity == "warning"


OF_ITSELF = {
    "a default": "pool = pool if pool is not None else DSAPool()",
    "a default the other way round": "pool = DSAPool() if pool is None else pool",
    "a part": "pool = pool.inner",
    "a part in a loop": "while pool.inner:\n        pool = pool.inner",
    "itself": "pool = pool",
    "a circle": "other = pool\n    pool = other\n    other = pool",
    "a call": "pool = pool.unwrap()",
    "an or": "pool = pool or DSAPool()",
    "a swap": "pool, other = m, pool\n    pool, other = other, pool",
    "a copy of its verb": "pool = Snapshot(pool)",
}


@pytest.mark.parametrize("line", OF_ITSELF.values(), ids=OF_ITSELF)
@pytest.mark.parametrize("annotation", ["", ": KVCache", ": 'DSAPool | None'"])
def test_variable_may_be_made_of_itself(tmp_path: Path, line: str, annotation: str) -> None:
    source = (
        "class Snapshot:\n    def __getattr__(self, name): ...\n"
        f"def f(i, m, pool{annotation} = None):\n    {line}\n"
        "    return pool.get_cpu_copy(i, mamba_indices=m)\n"
    )
    assert dropped(calling(tmp_path, source)).severity == "error"


def test_variable_may_be_replaced_by_its_copy(tmp_path: Path) -> None:
    source = """
        class Snapshot: ...
        def f(pool, i, m):
            pool = Snapshot(pool.get_cpu_copy(i, mamba_indices=m))
            return pool
    """
    assert dropped(calling(tmp_path, source)).severity == "error"


HIDDEN = {
    "a global that a function sets": """
        pool = MHAPool()
        def start():
            global pool
            pool = DSAPool()
        def f(i, m):
            return pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a walrus": """
        pool = MHAPool()
        def f(i, m):
            return (pool := make()) and pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a capture": """
        pool = MHAPool()
        def f(x, i, m):
            match x:
                case [pool, *_]:
                    return pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an attribute in a tuple": """
        class Scheduler:
            def __init__(self):
                self.pool = MHAPool()
            def narrow(self):
                self.pool, self.other = DSAPool(), 1
            def f(self, i, m):
                return self.pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an attribute that is set from outside": """
        class Scheduler:
            def __init__(self):
                self.pool = MHAPool()
            def f(self, i, m):
                return self.pool.get_cpu_copy(i, mamba_indices=m)
        def narrow(scheduler):
            scheduler.pool = DSAPool()
    """,
    "an inner parameter": """
        def f(i, m):
            pool = MHAPool()
            def copy(pool):
                return pool.get_cpu_copy(i, mamba_indices=m)
            return copy
    """,
}


@pytest.mark.parametrize("source", HIDDEN.values(), ids=HIDDEN)
def test_name_that_may_be_another_is_not_believed(tmp_path: Path, source: str) -> None:
    assert dropped(calling(tmp_path, source)).severity == "error"


def test_object_of_the_name_of_a_module_is_no_module(tmp_path: Path) -> None:
    source = """
        from engine import cache
        def f(i, m):
            return cache.get_cpu_copy(i, mamba_indices=m)
    """
    scan = calling(tmp_path, source, __init__="from engine.make import cache", cache="x = 1")
    assert dropped(scan).severity == "error"


def test_caller_that_catches_the_refusal_is_no_fault(tmp_path: Path) -> None:
    source = """
        def f(pool, i, m):
            try:
                return pool.get_cpu_copy(i, mamba_indices=m)
            except (AttributeError, TypeError):
                return pool.get_cpu_copy(i)
    """
    assert dropped(calling(tmp_path, source)).severity == "warning"


def test_caller_that_catches_something_else_is_a_fault(tmp_path: Path) -> None:
    source = """
        def f(pool, i, m):
            try:
                return pool.get_cpu_copy(i, mamba_indices=m)
            except NotImplementedError:
                return None
    """
    assert dropped(calling(tmp_path, source)).severity == "error"
