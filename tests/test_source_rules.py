"""Each rule on source: a class that breaks it, and one that keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_trees import (
    BODIES,
    DEFAULTS,
    DSA,
    KEYWORD,
    MHA,
    NAMES,
    PAIR,
    POSITION,
    REQUIRES,
    at,
    callers,
    errors,
    scanned,
    the_one,
    told,
)

from conformance.signatures.findings import Scan

CALLS = {
    "by keyword": "def retract(pool, i, m):\n    return pool.get_cpu_copy(i, mamba_indices=m)\n",
    "by position": "def retract(pool, i, m):\n    return pool.get_cpu_copy(i, m)\n",
    "without": "def retract(pool, i, m):\n    return pool.get_cpu_copy(i)\n",
    "wrongly": "def retract(pool, i, m):\n    return pool.get_cpu_copy(i, x=3, mamba_indices=m)\n",
}
KEYWORD_DROPPED = (KEYWORD, "dsa.DSAPool", "get_cpu_copy", "mamba_indices")


def overriding(folder: Path, body: str, scheduler: str = "", pools: str = BODIES) -> Scan:
    """The scan of one subclass with this body, and of what calls it."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    source = f"from engine.pools import KVCache\nclass DSAPool(KVCache):\n{lines}\n"
    return scanned(folder, {"dsa.py": source, "scheduler.py": scheduler}, pools=pools)


# -- a keyword of the root that is not accepted -------------------------------------------


def test_correct_family_is_not_accused(tmp_path: Path) -> None:
    scan = scanned(tmp_path, {"mha.py": MHA, "scheduler.py": CALLS["by keyword"]})
    assert scan.findings == ()
    assert scan.root == "engine.pools.KVCache"
    assert scan.classes == ("engine.mha.MHAPool",)


def test_dropped_keyword_that_a_caller_passes_is_an_error(tmp_path: Path) -> None:
    scan = scanned(tmp_path, {"dsa.py": DSA, "mha.py": MHA, "scheduler.py": CALLS["by keyword"]})
    assert told(scan) == [("error", *KEYWORD_DROPPED)]
    finding = scan.findings[0]
    assert at(finding.place) == "dsa.py:4"
    assert callers(finding) == ["scheduler.py:2"]
    assert finding.text == (
        "get_cpu_copy(indices) does not accept mamba_indices=, which KVCache does"
    )


def test_dropped_keyword_that_nobody_passes_is_a_warning(tmp_path: Path) -> None:
    scan = scanned(tmp_path, {"dsa.py": DSA, "scheduler.py": CALLS["without"]})
    assert told(scan) == [("warning", *KEYWORD_DROPPED)]
    assert scan.findings[0].callers == ()


def test_call_that_the_root_refuses_is_aimed_at_something_else(tmp_path: Path) -> None:
    scan = scanned(tmp_path, {"dsa.py": DSA, "scheduler.py": CALLS["wrongly"]})
    assert told(scan) == [("warning", *KEYWORD_DROPPED)]


def test_dropped_keyword_that_a_caller_passes_by_position_is_an_error(tmp_path: Path) -> None:
    scan = scanned(tmp_path, {"dsa.py": DSA, "scheduler.py": CALLS["by position"]})
    assert errors(scan), told(scan)
    assert {f.cls for f in scan.of("error")} == {"engine.dsa.DSAPool"}
    assert {place for f in scan.of("error") for place in callers(f)} == {"scheduler.py:2"}


def test_every_caller_of_a_dropped_keyword_is_named(tmp_path: Path) -> None:
    again = """
        class Allocator:
            def get_cpu_copy(self, indices, mamba_indices=None):
                return self._kvcache.get_cpu_copy(indices, mamba_indices=mamba_indices)

            def free(self, indices):
                self._kvcache.get_cpu_copy(indices)
                self._kvcache.get_cpu_copy(
                    indices,
                    mamba_indices=None,
                )
    """
    files = {"dsa.py": DSA, "scheduler.py": CALLS["by keyword"], "allocator.py": again}
    finding = the_one(scanned(tmp_path, files), KEYWORD)
    assert callers(finding) == ["allocator.py:3", "allocator.py:7", "scheduler.py:2"]


def test_stub_that_drops_a_keyword_says_what_the_caller_gets(tmp_path: Path) -> None:
    body = "def get_cpu_copy(self, indices):\n    raise NotImplementedError('no offload')"
    scan = overriding(tmp_path, body, CALLS["by keyword"])
    finding = the_one(scan, KEYWORD)
    assert finding.severity == "error"
    assert "only raises" in finding.text
    assert "TypeError" in finding.text


@pytest.mark.parametrize(
    "parameters",
    ["indices, **kwargs", "*args, **kwargs", "indices, *, mamba_indices=None"],
)
def test_keyword_may_be_taken_in_any_way(tmp_path: Path, parameters: str) -> None:
    body = f"def get_cpu_copy(self, {parameters}): ..."
    assert told(overriding(tmp_path, body, CALLS["by keyword"]), KEYWORD) == []


@pytest.mark.parametrize("parameters", ["indices, *args", "indices, mamba_indices=None, /"])
def test_keyword_cannot_be_passed_to_a_place(tmp_path: Path, parameters: str) -> None:
    body = f"def get_cpu_copy(self, {parameters}): ..."
    scan = overriding(tmp_path, body, CALLS["by keyword"])
    assert told(scan, KEYWORD) == [("error", *KEYWORD_DROPPED)]


# -- the other rules on one override ------------------------------------------------------

SWAPPED = "def load_cpu_copy(self, indices, kv_cache_cpu, mamba_indices=None): ..."


@pytest.mark.parametrize(
    ("arguments", "severity"),
    [
        ("c, i", "error"),
        ("*both", "error"),
        ("kv_cache_cpu=c, indices=i", "warning"),
    ],
)
def test_swapped_parameters_are_an_error_by_position(
    tmp_path: Path, arguments: str, severity: str
) -> None:
    caller = f"def resume(pool, c, i, both):\n    pool.load_cpu_copy({arguments})\n"
    scan = overriding(tmp_path, SWAPPED, caller)
    assert told(scan) == [
        (severity, POSITION, "dsa.DSAPool", "load_cpu_copy", name)
        for name in ("kv_cache_cpu", "indices")
    ]


def test_optional_parameter_in_another_place_is_told(tmp_path: Path) -> None:
    body = "def get_cpu_copy(self, indices, layers=None, mamba_indices=None): ..."
    scan = overriding(tmp_path, body, CALLS["by position"])
    assert ("error", POSITION, "dsa.DSAPool", "get_cpu_copy", "mamba_indices") in told(scan)
    assert callers(the_one(scan, POSITION)) == ["scheduler.py:2"]


def test_keyword_only_parameter_is_wrong_where_it_is_passed_by_position(tmp_path: Path) -> None:
    body = "def get_cpu_copy(self, indices, *, mamba_indices=None): ..."
    dropped = (POSITION, "dsa.DSAPool", "get_cpu_copy", "mamba_indices")
    by_position = overriding(tmp_path / "position", body, CALLS["by position"])
    by_keyword = overriding(tmp_path / "keyword", body, CALLS["by keyword"])
    assert told(by_position) == [("error", *dropped)]
    assert told(by_keyword) == [("warning", *dropped)]


RENAMED = "def load_cpu_copy(self, cache_cpu, indices, mamba_indices=None): ..."


@pytest.mark.parametrize(
    ("arguments", "severity", "places"),
    [
        ("c, i, mamba_indices=m", "warning", []),
        ("kv_cache_cpu=c, indices=i", "error", ["scheduler.py:2"]),
        ("c, indices=i", "warning", []),
    ],
)
def test_renamed_parameter_is_an_error_only_when_somebody_names_it(
    tmp_path: Path, arguments: str, severity: str, places: list[str]
) -> None:
    caller = f"def resume(pool, c, i, m):\n    pool.load_cpu_copy({arguments})\n"
    scan = overriding(tmp_path, RENAMED, caller)
    assert told(scan) == [(severity, NAMES, "dsa.DSAPool", "load_cpu_copy", "kv_cache_cpu")]
    assert callers(scan.findings[0]) == places


@pytest.mark.parametrize("parameters", ["cache_cpu, indices, **rest", "kv_cache_cpu, /, **rest"])
def test_rest_does_not_fill_a_renamed_parameter(tmp_path: Path, parameters: str) -> None:
    caller = "def resume(pool, c, i):\n    pool.load_cpu_copy(kv_cache_cpu=c, indices=i)\n"
    scan = overriding(tmp_path, f"def load_cpu_copy(self, {parameters}): ...", caller)
    assert {place for f in scan.of("error") for place in callers(f)} == {"scheduler.py:2"}


def test_pair_that_disagrees_hides_no_refused_call(tmp_path: Path) -> None:
    body = "def get_cpu_copy(self, *args, indices, req=None, mamba_indices=None): ..."
    scan = overriding(tmp_path, body, CALLS["without"])
    assert {clause for _, clause, *_ in errors(scan)} > {PAIR}


def test_places_that_are_swallowed_do_not_fill_a_required_keyword(tmp_path: Path) -> None:
    body = "def load_cpu_copy(self, *args, indices, **kwargs): ..."
    caller = "def resume(pool, c, i):\n    pool.load_cpu_copy(c, i)\n"
    scan = overriding(tmp_path, body, caller)
    assert {place for f in scan.of("error") for place in callers(f)} == {"scheduler.py:2"}


def test_swapped_parameters_that_became_required_are_an_error(tmp_path: Path) -> None:
    body = "def get_cpu_copy(self, mamba_indices, indices): ..."
    caller = "def retract(pool, i):\n    pool.get_cpu_copy(indices=i)\n"
    assert errors(overriding(tmp_path, body, caller))


def test_one_more_required_parameter_is_an_error(tmp_path: Path) -> None:
    body = "def get_cpu_copy(self, indices, layer_ids, mamba_indices=None): ..."
    scan = overriding(tmp_path, body)
    assert ("error", REQUIRES, "dsa.DSAPool", "get_cpu_copy", "layer_ids") in told(scan)
    assert len(told(scan, REQUIRES)) == 1


def test_one_more_required_keyword_is_an_error(tmp_path: Path) -> None:
    body = "def get_cpu_copy(self, indices, mamba_indices=None, *, stream): ..."
    scan = overriding(tmp_path, body, CALLS["without"])
    assert told(scan) == [("error", REQUIRES, "dsa.DSAPool", "get_cpu_copy", "stream")]
    assert callers(scan.findings[0]) == ["scheduler.py:2"]


def test_keyword_on_one_half_of_the_pair_is_an_error(tmp_path: Path) -> None:
    body = "def get_cpu_copy(self, indices, mamba_indices=None, req_pool_index=None): ..."
    scan = overriding(tmp_path, body)
    assert told(scan) == [("error", PAIR, "dsa.DSAPool", "get_cpu_copy", "req_pool_index")]
    assert "load_cpu_copy" in scan.findings[0].text


def test_pair_is_compared_where_only_one_half_is_inherited(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class Both(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=None, req=None): ...
            def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None, req=None): ...
        class Half(Both):
            def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None): ...
        class Neither(Half): ...
    """
    scan = scanned(tmp_path, {"dsa.py": source}, pools=BODIES)
    assert told(scan) == [("error", PAIR, "dsa.Half", "get_cpu_copy", "req")]


def test_keyword_on_both_halves_of_the_pair_is_right(tmp_path: Path) -> None:
    body = (
        "def get_cpu_copy(self, indices, mamba_indices=None, req_pool_index=None): ...\n"
        "def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None, **more): ..."
    )
    assert told(overriding(tmp_path, body)) == []


@pytest.mark.parametrize(
    ("root", "here", "differs"),
    [
        ("None", "()", True),
        ("-1", "- 1", False),
        ("'a'", '"a"', False),
        ("torch.int64", "torch.int32", True),
        ("torch.int64", "torch.int64", False),
        ("[]", "{}", True),
        ("None", "0", True),
        ("1_000", "1000", False),
    ],
)
def test_other_default_is_a_warning(tmp_path: Path, root: str, here: str, differs: bool) -> None:
    pools = BODIES.replace("indices, mamba_indices=None", f"indices, mamba_indices={root}")
    body = f"def get_cpu_copy(self, indices, mamba_indices={here}): ..."
    scan = overriding(tmp_path, body, CALLS["by keyword"], pools)
    expected = [("warning", DEFAULTS, "dsa.DSAPool", "get_cpu_copy", "mamba_indices")]
    assert told(scan) == (expected if differs else [])


def test_optional_parameter_that_became_required_is_told(tmp_path: Path) -> None:
    body = "def get_cpu_copy(self, indices, mamba_indices): ..."
    scan = overriding(tmp_path, body, CALLS["without"])
    assert ("error", REQUIRES, "dsa.DSAPool", "get_cpu_copy", "mamba_indices") in told(scan)


# -- faults that are inherited ------------------------------------------------------------


def test_inherited_fault_is_told_once_where_it_is_defined(tmp_path: Path) -> None:
    npu = """
        from engine.dsa import DSAPool
        class NPUDSAPool(DSAPool):
            def move_kv_cache(self, tgt_loc, src_loc): ...
        class NPUDraftPool(NPUDSAPool): ...
    """
    files = {"dsa.py": DSA, "npu.py": npu, "scheduler.py": CALLS["by keyword"]}
    assert told(scanned(tmp_path, files)) == [("error", *KEYWORD_DROPPED)]


def test_repaired_subclass_of_a_faulty_class_is_not_accused(tmp_path: Path) -> None:
    npu = """
        from engine.dsa import DSAPool
        class NPUDSAPool(DSAPool):
            def get_cpu_copy(self, indices, mamba_indices=None):
                return super().get_cpu_copy(indices), self.state[mamba_indices]
    """
    files = {"dsa.py": DSA, "npu.py": npu, "scheduler.py": CALLS["by keyword"]}
    assert told(scanned(tmp_path, files)) == [("error", *KEYWORD_DROPPED)]


def test_fault_of_a_mixin_is_told_of_each_class_that_it_reaches(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class OffloadMixin:
            def get_cpu_copy(self, indices):
                return self.buffer[indices]
        class First(OffloadMixin, KVCache): ...
        class Second(OffloadMixin, KVCache): ...
        class Third(Second): ...
        class Hidden(KVCache, OffloadMixin): ...
    """
    files = {"dsa.py": source, "scheduler.py": CALLS["by keyword"]}
    scan = scanned(tmp_path, files, pools=BODIES)
    assert told(scan) == [
        ("error", KEYWORD, f"dsa.{name}", "get_cpu_copy", "mamba_indices")
        for name in ("First", "Second")
    ]
    assert {at(f.place) for f in scan.findings} == {"dsa.py:3"}


def test_errors_come_first_then_warnings_then_notes(tmp_path: Path) -> None:
    source = """
        from engine.pools import KVCache
        class A(KVCache):
            def get_cpu_copy(self, indices, mamba_indices=0): ...
            def load_cpu_copy(self, *args, **kwargs):
                raise NotImplementedError
        class B(KVCache):
            def get_cpu_copy(self, indices): ...
    """
    files = {"dsa.py": source, "scheduler.py": CALLS["by keyword"]}
    severities = [severity for severity, *_ in told(scanned(tmp_path, files))]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert set(severities) == {"error", "warning", "note"}
