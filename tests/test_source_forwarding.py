"""Parameters that an override accepts and drops on the way to its parent."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from source_trees import BODIES, FORWARDED, POOLS, Told, at, scanned, the_one, told

SIGNATURE = "self, indices, mamba_indices=None"
DROPPED = ("warning", FORWARDED, "draft.DraftPool", "get_cpu_copy", "mamba_indices")


def forwarding(folder: Path, body: str, parameters: str = SIGNATURE) -> list[Told]:
    """What is told of a subclass whose `get_cpu_copy` has this body."""
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)
    source = (
        "from engine.pools import KVCache\n"
        "class DraftPool(KVCache):\n"
        f"    def get_cpu_copy({parameters}):\n{lines}\n"
    )
    return told(scanned(folder, {"draft.py": source}, pools=BODIES))


DROPS = {
    "one argument": "return super().get_cpu_copy(indices)",
    "an argument by its name": "return super().get_cpu_copy(indices=indices)",
    "super of old": "return super(DraftPool, self).get_cpu_copy(indices)",
    "a use of its own": """
        self.state = mamba_indices
        return super().get_cpu_copy(indices)
    """,
    "every branch": """
        if self.quantized:
            return super().get_cpu_copy(indices), self.scales[indices]
        return super().get_cpu_copy(indices)
    """,
    "a comprehension": "return [super(DraftPool, self).get_cpu_copy(i) for i in indices]",
}


@pytest.mark.parametrize("body", DROPS.values(), ids=DROPS)
def test_parameter_that_the_parent_uses_is_told_where_it_is_dropped(
    tmp_path: Path, body: str
) -> None:
    assert forwarding(tmp_path, body) == [DROPPED]


@pytest.mark.parametrize(
    ("parameters", "call"),
    [
        ("self, indices, mamba_indices=None, **kwargs", "indices, **kwargs"),
        ("self, indices, *args, mamba_indices=None", "indices, *args"),
        ("self, indices, *args, mamba_indices=None, **kw", "indices, *args, **kw"),
    ],
)
def test_rest_does_not_hold_a_parameter_that_has_a_name(
    tmp_path: Path, parameters: str, call: str
) -> None:
    found = forwarding(tmp_path, f"return super().get_cpu_copy({call})", parameters)
    assert [f for f in found if f[1] == FORWARDED] == [DROPPED]


PASSES = {
    "by its name": "return super().get_cpu_copy(indices, mamba_indices=mamba_indices)",
    "by position": "return super().get_cpu_copy(indices, mamba_indices)",
    "in a dictionary": "return super().get_cpu_copy(indices, **{'mamba_indices': mamba_indices})",
    "in a variable": """
        arguments = {"mamba_indices": mamba_indices}
        return super().get_cpu_copy(indices, **arguments)
    """,
    "changed": "return super().get_cpu_copy(indices, mamba_indices=self.translate(mamba_indices))",
    "by another name": """
        states = self.translate(mamba_indices)
        return super().get_cpu_copy(indices, states)
    """,
    "all in one": "return super().get_cpu_copy(*(indices, mamba_indices))",
    "on one branch": """
        if mamba_indices is None:
            return super().get_cpu_copy(indices)
        return super().get_cpu_copy(indices, mamba_indices=mamba_indices)
    """,
    "from an inner function": """
        parent = super()
        def later():
            return super(DraftPool, self).get_cpu_copy(indices, mamba_indices)
        return later()
    """,
    "no parent asked": "return self.k_buffer[indices]",
    "another verb of the parent": "super().move_kv_cache(indices, indices)",
}


@pytest.mark.parametrize("body", PASSES.values(), ids=PASSES)
def test_parameter_that_is_passed_on_is_not_told(tmp_path: Path, body: str) -> None:
    assert forwarding(tmp_path, body) == []


FILLED_REST = {
    "by key": 'kwargs["mamba_indices"] = mamba_indices',
    "by update": "kwargs.update(mamba_indices=mamba_indices)",
    "by a new dictionary": "kwargs = dict(kwargs, mamba_indices=mamba_indices)",
    "by a display": 'kwargs = {**kwargs, "mamba_indices": mamba_indices}',
    "by a join": 'kwargs |= {"mamba_indices": mamba_indices}',
    "by default": 'kwargs.setdefault("mamba_indices", mamba_indices)',
}


@pytest.mark.parametrize("line", FILLED_REST.values(), ids=FILLED_REST)
def test_rest_that_is_filled_with_the_parameter_passes_it_on(tmp_path: Path, line: str) -> None:
    body = f"{line}\nreturn super().get_cpu_copy(indices, **kwargs)"
    parameters = "self, indices, mamba_indices=None, **kwargs"
    assert forwarding(tmp_path, body, parameters) == []


UNUSED = {
    "never named": "return self.k_buffer[indices]",
    "deleted": "del mamba_indices\n    return self.k_buffer[indices]",
    "only documented": "'''mamba_indices is not used'''\n    return self.k_buffer[indices]",
}


@pytest.mark.parametrize("body", UNUSED.values(), ids=UNUSED)
def test_parent_that_does_not_use_a_parameter_misses_nothing(tmp_path: Path, body: str) -> None:
    lines = textwrap.indent(textwrap.dedent(body), "    ")
    pools = BODIES.replace("        return self.k_buffer[indices], mamba_indices", f"    {lines}")
    assert body.splitlines()[-1].strip() in pools
    source = """
        from engine.pools import KVCache
        class DraftPool(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices)
    """
    assert told(scanned(tmp_path, {"draft.py": source}, pools=pools)) == []


def test_stub_of_the_root_misses_nothing(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class DraftPool(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices)
            def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None): ...
    """
    assert told(scanned(tmp_path, {"draft.py": source}, pools=POOLS)) == []


MIDDLE = {
    "by its name": "indices, mamba_indices=None):\n        return super().get_cpu_copy("
    "indices, mamba_indices=mamba_indices)",
    "by position": "indices, mamba_indices=None):\n        return super().get_cpu_copy("
    "indices, mamba_indices)",
    "with the rest": "*args, **kwargs):\n        return super().get_cpu_copy(*args, **kwargs)",
    "as the rest": "indices, **kwargs):\n        return super().get_cpu_copy(indices, **kwargs)",
}


@pytest.mark.parametrize("middle", MIDDLE.values(), ids=MIDDLE)
@pytest.mark.parametrize("is_used", [True, False])
def test_use_two_levels_above_counts(tmp_path: Path, middle: str, is_used: bool) -> None:
    source = (
        "from engine.pools import KVCache\n"
        f"class Middle(KVCache):\n    def get_cpu_copy(self, {middle}\n"
        "class DraftPool(Middle):\n"
        "    def get_cpu_copy(self, indices, mamba_indices=None):\n"
        "        return super().get_cpu_copy(indices)\n"
    )
    pools = BODIES if is_used else BODIES.replace("[indices], mamba_indices", "[indices]")
    scan = scanned(tmp_path, {"draft.py": source}, pools=pools)
    assert told(scan, FORWARDED) == ([DROPPED] if is_used else [])


def test_middle_that_drops_it_is_told_and_its_child_is_not(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class Middle(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices)
        class DraftPool(Middle):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices)
    """
    scan = scanned(tmp_path, {"draft.py": source}, pools=BODIES)
    assert told(scan) == [("warning", FORWARDED, "draft.Middle", "get_cpu_copy", "mamba_indices")]


def test_finding_names_parameter_parent_and_line(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class DraftPool(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices)
    """
    finding = the_one(scanned(tmp_path, {"draft.py": source}, pools=BODIES), FORWARDED)
    assert at(finding.place) == "draft.py:3"
    assert "mamba_indices" in finding.text
    assert "KVCache" in finding.text


def test_mixin_in_front_of_a_pool_may_drop_it_too(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class LogMixin:
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices)
        class DraftPool(LogMixin, KVCache): ...
    """
    scan = scanned(tmp_path, {"draft.py": source}, pools=BODIES)
    assert told(scan) == [DROPPED]
    assert at(scan.findings[0].place) == "draft.py:3"


def test_mixin_that_drops_it_is_not_told_again_of_a_subclass(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class LogMixin:
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices)
        class DraftPool(LogMixin, KVCache): ...
        class Below(DraftPool): ...
    """
    assert told(scanned(tmp_path, {"draft.py": source}, pools=BODIES)) == [DROPPED]


def test_parent_in_a_diamond_is_the_next_class_in_line(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class Plain(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return self.k_buffer[indices]
        class Left(KVCache): ...
        class DraftPool(Left, Plain):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices)
    """
    assert told(scanned(tmp_path, {"draft.py": source}, pools=BODIES)) == []


def test_explicit_parent_counts_like_super(tmp_path: Path) -> None:
    dropping = "return KVCache.get_cpu_copy(self, indices)"
    passing = "return KVCache.get_cpu_copy(self, indices, mamba_indices)"
    assert forwarding(tmp_path / "dropping", dropping) == [DROPPED]
    assert forwarding(tmp_path / "passing", passing) == []


def test_only_optional_parameters_are_told(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class DraftPool(KVCache):
            def move_kv_cache(self, tgt_loc, src_loc):
                return super().move_kv_cache(src_loc=self.a, tgt_loc=self.b)
    """
    assert told(scanned(tmp_path, {"draft.py": source}, pools=BODIES)) == []
