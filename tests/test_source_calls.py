"""What callers pass, in every way that arguments are passed, and where they call from."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from source_trees import (
    BINDS,
    BODIES,
    DSA,
    KEYWORD,
    MHA,
    NAMES,
    at,
    callers,
    errors,
    scanned,
    the_one,
    told,
)

PASSED = {
    "a dictionary in place": "pool.get_cpu_copy(i, **{'mamba_indices': m})",
    "a dictionary with more in it": "pool.get_cpu_copy(i, **{'mamba_indices': m, **more})",
    "a call of dict": "pool.get_cpu_copy(i, **dict(mamba_indices=m))",
    "a dictionary or none": "pool.get_cpu_copy(i, **({'mamba_indices': m} if m else {}))",
    "a dictionary in a variable": """
        kwargs = {"mamba_indices": m}
        pool.get_cpu_copy(i, **kwargs)
    """,
    "a dictionary with an annotation": """
        kwargs: dict[str, object] = {"mamba_indices": m}
        pool.get_cpu_copy(i, **kwargs)
    """,
    "a dictionary that is filled on a condition": """
        kwargs = {}
        if m is not None:
            kwargs["mamba_indices"] = m
        pool.get_cpu_copy(i, **kwargs)
    """,
    "a dictionary that is chosen": """
        if m is None:
            kwargs = {}
        else:
            kwargs = {"mamba_indices": m}
        pool.get_cpu_copy(i, **kwargs)
    """,
    "a dictionary that is updated by keyword": """
        kwargs = {}
        kwargs.update(mamba_indices=m)
        pool.get_cpu_copy(i, **kwargs)
    """,
    "a dictionary that is updated with another": """
        kwargs = {}
        if m is not None:
            kwargs.update({"mamba_indices": m})
        pool.get_cpu_copy(i, **kwargs)
    """,
    "a dictionary that is joined": """
        kwargs = {}
        kwargs |= {"mamba_indices": m}
        pool.get_cpu_copy(i, **kwargs)
    """,
    "a default that is set": """
        more.setdefault("mamba_indices", m)
        pool.get_cpu_copy(i, **more)
    """,
    "the rest with one more": """
        more["mamba_indices"] = m
        pool.get_cpu_copy(i, **more)
    """,
    "a dictionary in a comprehension": """
        kwargs = {"mamba_indices": m}
        x = [pool.get_cpu_copy(j, **kwargs) for j in i]
    """,
    "a dictionary in a lambda": """
        kwargs = {"mamba_indices": m}
        later = lambda j: pool.get_cpu_copy(j, **kwargs)
    """,
    "a star first": "pool.get_cpu_copy(*[i], mamba_indices=m)",
    "a condition": """
        if m is not None:
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an expression on a condition": "x = pool.get_cpu_copy(i, mamba_indices=m) if m else None",
    "an and": "x = m and pool.get_cpu_copy(i, mamba_indices=m)",
    "a handler": """
        try:
            x = 1
        except ValueError:
            pool.get_cpu_copy(i, mamba_indices=m)
        finally:
            pass
    """,
    "a group of handlers": """
        try:
            x = 1
        except* ValueError:
            pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a case": """
        match m:
            case [first, *_] if pool.get_cpu_copy(i, mamba_indices=first):
                pass
    """,
    "a lambda": "later = lambda: pool.get_cpu_copy(i, mamba_indices=m)",
    "a comprehension": "x = [pool.get_cpu_copy(j, mamba_indices=m) for j in i]",
    "a generator": "x = sum(pool.get_cpu_copy(j, mamba_indices=m) for j in i)",
    "an inner function": """
        def later():
            return pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a decorator": """
        @pool.get_cpu_copy(i, mamba_indices=m)
        def later(): ...
    """,
    "a decorator of a class": """
        @pool.get_cpu_copy(i, mamba_indices=m)
        class Later: ...
    """,
    "a default argument": """
        def later(x=pool.get_cpu_copy(i, mamba_indices=m)): ...
    """,
    "a default of a keyword": """
        def later(*, x=pool.get_cpu_copy(i, mamba_indices=m)): ...
    """,
    "a keyword of a class": """
        class Later(metaclass=pool.get_cpu_copy(i, mamba_indices=m)): ...
    """,
    "a class body": """
        class Later:
            x = pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "an f-string": "x = f'{pool.get_cpu_copy(i, mamba_indices=m)!r:>{3}}'",
    "an argument of another call": "print(pool.get_cpu_copy(i, mamba_indices=m)[0].cpu())",
    "an await": """
        async def later():
            return await pool.get_cpu_copy(i, mamba_indices=m)
    """,
    "a with": """
        with pool.get_cpu_copy(i, mamba_indices=m) as x:
            pass
    """,
    "a loop": """
        for x in pool.get_cpu_copy(i, mamba_indices=m):
            pass
    """,
    "an assertion": "assert pool.get_cpu_copy(i, mamba_indices=m)",
    "a yield": "yield pool.get_cpu_copy(i, mamba_indices=m)",
    "a subscript on the left": "more[pool.get_cpu_copy(i, mamba_indices=m)] = 1",
}


def function(body: str) -> str:
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return f"def f(pool, i, m, **more):\n{lines}\n"


@pytest.mark.parametrize("body", PASSED.values(), ids=PASSED)
def test_keyword_that_may_be_passed_is_an_error(tmp_path: Path, body: str) -> None:
    scan = scanned(tmp_path, {"dsa.py": DSA, "scheduler.py": function(body)})
    assert told(scan) == [("error", KEYWORD, "dsa.DSAPool", "get_cpu_copy", "mamba_indices")]
    (place,) = the_one(scan, KEYWORD).callers
    line = place.path.read_text(encoding="utf-8").splitlines()[place.line - 1]
    assert "pool.get_cpu_copy" in line


@pytest.mark.parametrize("body", PASSED.values(), ids=PASSED)
def test_no_way_to_pass_a_keyword_harms_a_correct_class(tmp_path: Path, body: str) -> None:
    scan = scanned(tmp_path, {"mha.py": MHA, "scheduler.py": function(body)})
    assert told(scan) == []


def test_call_of_a_module_is_a_call(tmp_path: Path) -> None:
    source = "import x\nCOPY = x.pool.get_cpu_copy([], mamba_indices=[])\n"
    scan = scanned(tmp_path, {"dsa.py": DSA, "scheduler.py": source})
    assert callers(the_one(scan, KEYWORD)) == ["scheduler.py:2"]


NOT_PASSED = {
    "nothing more": "pool.get_cpu_copy(i)",
    "the rest": "pool.get_cpu_copy(i, **more)",
    "another dictionary": "pool.get_cpu_copy(i, **make(m))",
    "a dictionary of a variable": """
        kwargs = more
        pool.get_cpu_copy(i, **kwargs)
    """,
    "a name that is only mentioned": "print('pool.get_cpu_copy(i, mamba_indices=m)')  # m",
    "a comment": "pass  # pool.get_cpu_copy(i, mamba_indices=m)",
    "a method that is not called": "later = pool.get_cpu_copy",
    "a function of the same name": "get_cpu_copy(i, mamba_indices=m)",
    "a longer name": "pool.get_cpu_copy_async(i, mamba_indices=m)",
    "another verb": "pool.load_cpu_copy(more, i, mamba_indices=m)",
    "an argument of another call": "pool.get_cpu_copy(dict(i, mamba_indices=m))",
}


@pytest.mark.parametrize("body", NOT_PASSED.values(), ids=NOT_PASSED)
def test_keyword_that_nobody_passes_is_a_warning(tmp_path: Path, body: str) -> None:
    scan = scanned(tmp_path, {"dsa.py": DSA, "scheduler.py": function(body)})
    assert told(scan) == [("warning", KEYWORD, "dsa.DSAPool", "get_cpu_copy", "mamba_indices")]


DICTIONARY_OF_ITSELF = {
    "the usual default": "kwargs = kwargs if kwargs is not None else {}",
    "a default the other way round": "kwargs = {} if kwargs is None else kwargs",
    "a copy": "kwargs = dict(**kwargs)",
    "a copy with more": "kwargs = {**kwargs, 'mamba_indices': 1}",
    "a default by or": "kwargs = kwargs or {}",
}


@pytest.mark.parametrize("line", DICTIONARY_OF_ITSELF.values(), ids=DICTIONARY_OF_ITSELF)
def test_dictionary_may_be_made_of_itself(tmp_path: Path, line: str) -> None:
    source = f"""
        def f(pool, i, kwargs=None):
            {line}
            pool.get_cpu_copy(i, **kwargs)
    """
    scan = scanned(tmp_path, {"dsa.py": DSA, "scheduler.py": source})
    assert [clause for _, clause, *_ in told(scan)] == [KEYWORD]


def test_renamed_parameter_in_a_dictionary_is_an_error(tmp_path: Path) -> None:
    dsa = DSA.replace("kv_cache_cpu, indices", "cache, indices")
    source = """
        def f(pool, c, i):
            arguments = {"kv_cache_cpu": c, "indices": i}
            pool.load_cpu_copy(**arguments)
    """
    scan = scanned(tmp_path, {"dsa.py": dsa, "scheduler.py": source})
    assert told(scan, NAMES) == [("error", NAMES, "dsa.DSAPool", "load_cpu_copy", "kv_cache_cpu")]


# -- calls that bind on nothing -----------------------------------------------------------


def bound(folder: Path, body: str) -> list[tuple[str, str]]:
    """Class and parameter of each call, on a decided receiver, that does not bind."""
    imports = "from engine.mha import MHAPool\nfrom engine.pools import KVCache\n"
    source = imports + f"def f(root: KVCache, pool: MHAPool, c, i, m):\n    {body}\n"
    scan = scanned(folder, {"mha.py": MHA, "scheduler.py": source}, pools=BODIES)
    assert {(f.severity, f.clause) for f in scan.findings} <= {("error", BINDS)}
    assert all(at(f.place).startswith("scheduler.py:") for f in scan.findings)
    return [(cls, parameter) for _, _, cls, _, parameter in told(scan)]


UNBOUND = {
    "root.get_cpu_copy(i, layer=1)": ("pools.KVCache", "layer"),
    "root.load_cpu_copy(c)": ("pools.KVCache", "indices"),
    "pool.get_cpu_copy(i, layer=1)": ("mha.MHAPool", "layer"),
    "pool.load_cpu_copy(i, indices=i)": None,
    "pool.load_cpu_copy(c, i, indices=i)": ("mha.MHAPool", "indices"),
    "pool.get_cpu_copy(i, m, 3)": ("mha.MHAPool", ""),
    "pool.get_cpu_copy()": ("mha.MHAPool", "indices"),
    "pool.get_cpu_copy(**{'indices': i, 'layer': 1})": ("mha.MHAPool", "layer"),
    "pool.get_cpu_copy(*c)": None,
    "pool.get_cpu_copy(*c, **m)": None,
    "pool.get_cpu_copy(**m)": None,
    "pool.get_cpu_copy(*c, layer=1)": ("mha.MHAPool", "layer"),
    "pool.get_cpu_copy(**m, layer=1)": ("mha.MHAPool", "layer"),
    "MHAPool.get_cpu_copy(pool, i, mamba_indices=m)": None,
    "MHAPool.get_cpu_copy(i, layer=1)": ("mha.MHAPool", "indices"),
    "MHAPool().move_kv_cache(c, src=i)": ("pools.KVCache", "src_loc"),
    "other.get_cpu_copy(i, layer=1)": None,
    "i.get_cpu_copy()": None,
}


@pytest.mark.parametrize("body", UNBOUND)
def test_call_that_binds_on_nothing_is_an_error(tmp_path: Path, body: str) -> None:
    expected = UNBOUND[body]
    assert bound(tmp_path, body) == ([] if expected is None else [expected])


FILLED = {
    "a join": 'arguments = {}\n    arguments |= {"indices": i}',
    "a default": 'arguments = {}\n    arguments.setdefault("indices", i)',
    "a key in a variable": "arguments = {}\n    for k in m:\n        arguments[k] = i",
    "another function": "arguments = {}\n    fill(arguments)",
    "a key that is taken out": (
        'arguments = {"indices": i, "layer": 1}\n    arguments.pop("layer", None)'
    ),
    "a key that is deleted": 'arguments = {"indices": i, "layer": 1}\n    del arguments["layer"]',
    "an attribute": "arguments = {}\n    m.arguments = arguments\n    m.fill()",
}


@pytest.mark.parametrize("body", FILLED.values(), ids=FILLED)
def test_dictionary_that_may_hold_more_is_not_accused(tmp_path: Path, body: str) -> None:
    assert bound(tmp_path, f"{body}\n    pool.get_cpu_copy(**arguments)") == []


def test_call_that_only_its_override_accepts_is_right(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class WidePool(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=None, *, layer=0): ...
            def load_cpu_copy(self, cpu, indices, mamba_indices=None, *, layer=0): ...
        def f(i):
            WidePool().get_cpu_copy(i, layer=1)
    """
    assert errors(scanned(tmp_path, {"wide.py": source}, pools=BODIES)) == []


@pytest.mark.parametrize("decorator", ["staticmethod", "classmethod"])
@pytest.mark.parametrize("owner", ["KVCache", "MHAPool", "MHAPool()", "pool"])
def test_static_verb_may_be_called_of_a_class(tmp_path: Path, decorator: str, owner: str) -> None:
    first = "cls, " if decorator == "classmethod" else ""
    pools = BODIES.replace(
        "def move_kv_cache(self, ", f"@{decorator}\n    def move_kv_cache({first}"
    )
    source = f"""
        from engine.mha import MHAPool
        from engine.pools import KVCache
        def f(pool: MHAPool, t, s):
            {owner}.move_kv_cache(t, src_loc=s)
    """
    scan = scanned(tmp_path, {"mha.py": MHA, "scheduler.py": source}, pools=pools)
    assert told(scan) == []


def test_super_call_that_does_not_bind_is_an_error(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class LayerPool(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices, mamba_indices, self.layer)
    """
    scan = scanned(tmp_path, {"layer.py": source}, pools=BODIES)
    assert told(scan) == [("error", BINDS, "pools.KVCache", "get_cpu_copy", "")]
    assert scan.findings[0].place.line == 4
