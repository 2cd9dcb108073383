"""Defects that were fixed, each with the smallest case that showed it."""

from __future__ import annotations

import collections
import importlib
import types
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from drawn_programs import seeded
from hypothesis import find, given, settings

from conformance import Family, Known, Pool, scenarios
from conformance.adapters.plain import Plain
from conformance.buffers import Inventory, take_inventory
from conformance.case import Case
from conformance.contract import CLAUSES
from conformance.geometry import geometries, parse_geometry
from conformance.programs import CopyState, Offload, Program, Reload, Write, parse_program
from conformance.signatures.imported import members
from conformance.signatures.live import member_of
from conformance.signatures.rules import RULES
from conformance.walk import tensors_in
from reference_pools import DSAPool
from reference_pools.declarations import make_dsa, make_hybrid, make_token

TOKEN = 'Pool("token", make_token, kind="token")'
MLA = 'Pool("mla", make_mla, kind="mla")'
NARROW = 'Pool("narrow", partial(make_mla, cls=NarrowHostRows), kind="mla")'
G = geometries(Pool("p", make_token, kind="token"))[0]


# -- test_plugin: some of the checks may be selected -----------------------------------


@pytest.mark.parametrize("check", ["", "[mla]"])
def test_checks_can_be_selected_by_node_id(downstream: Any, check: str) -> None:
    family = "Family(KVPool, packages=['reference_pools.token'])"
    selected = f"test_kv.py::test_empty_set_is_legal{check}"
    result = downstream(f"[{TOKEN}, {MLA}, {family}]", selected)
    result.assert_outcomes(passed=1 if check else 2)


def test_last_failed_checks_can_be_selected(downstream: Any) -> None:
    first = downstream(f"[{TOKEN}, {NARROW}]", "-k", "the_same_rows").parseoutcomes()
    assert (first["passed"], first["failed"]) == (1, 1)
    downstream(f"[{TOKEN}, {NARROW}]", "--lf").assert_outcomes(failed=1)


def test_empty_parameter_sets_may_be_forbidden_downstream(downstream: Any) -> None:
    options = ("-o", "empty_parameter_set_mark=fail_at_collect", "-k", "empty_set")
    assert downstream(f"[{TOKEN}]", *options).ret == 0


# -- test_plugin: what is wrong is said, and in time -----------------------------------


def test_fixed_witness_without_a_reload_asks_to_be_deleted(downstream: Any) -> None:
    known = 'known={"copy_is_its_own_memory": Known("a view", "write r0 at 5; offload r0 as c0")}'
    pool = f'Pool("token", make_token, kind="token", {known})'
    result = downstream(f"[{pool}]", "-k", "its_own_memory")
    result.assert_outcomes(failed=1)
    assert "delete this entry of `known`" in result.stdout.str()


@pytest.mark.parametrize(
    "entry",
    [
        'Pool("token", make_token, kind="token", known={"state_travels": Known("x", "overwrite")})',
        "Family(KVPool, packages=['reference_pools.token'], "
        "known={'TokenPol': {'override_binds_by_position': Known('x')}})",
    ],
    ids=["clause that does not apply", "class that does not exist"],
)
def test_known_that_nothing_checks_fails_the_run(downstream: Any, entry: str) -> None:
    assert downstream(f"[{TOKEN.replace('token', 'other', 1)}, {entry}]").ret != 0


def test_report_in_a_folder_that_does_not_exist_is_refused_at_once(downstream: Any) -> None:
    result = downstream(f"[{TOKEN}]", "--kv-report=nowhere/out.json", "-k", "empty_set")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--kv-report=nowhere/out.json" in result.stderr.str()


def test_hook_that_returns_no_list_is_told(downstream: Any) -> None:
    result = downstream(TOKEN, "-k", "empty_set")
    assert "pytest_kv_pools must return a list" in result.stderr.str()


def test_bad_declaration_is_told_without_a_traceback(downstream: Any) -> None:
    result = downstream(f"[{TOKEN}, {TOKEN}]")
    assert "two pools, allocators or host tiers are named 'token'" in result.stderr.str()
    assert "_genfunctions" not in result.stdout.str()


def test_bad_declaration_is_told_by_workers_too(pytester: pytest.Pytester) -> None:
    pool = "Pool('token', object, kind='token')"
    pytester.makeconftest(
        f"from conformance import Pool\ndef pytest_kv_pools():\n    return [{pool}, {pool}]\n"
    )
    pytester.makepyfile("def test_empty_set_is_legal(kv_case): ...")
    result = pytester.runpytest_subprocess("-n", "1")
    result.assert_outcomes(errors=1)
    assert "two pools, allocators or host tiers are named 'token'" in result.stdout.str()
    assert "INTERNALERROR" not in result.stdout.str()


# -- test_model: correct pools are never accused ----------------------------------------


class PaddedPages(DSAPool):
    """Its pages of keys and scales end in six bytes of padding."""

    def __init__(self, **geometry: Any) -> None:
        super().__init__(**geometry)
        self.index_k = [torch.cat([r, r.new_zeros(len(r), 6)], 1) for r in self.index_k]

    def slots(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return super().slots(rows[:, :-6])


def test_slots_before_a_run_may_be_kept_in_pages_of_any_layout() -> None:
    pool = Pool("padded", partial(make_dsa, cls=PaddedPages), kind="dsa")
    case = Case(pool, CLAUSES["companions_travel"], "cpu", "required", 1)
    program = parse_program("write r0 at 6; offload r0 as c0; overwrite; reload c0 at 11")
    case.run(geometries(pool)[0], program)


NO_STATE = """
class NoState(TokenPool):
    def get_cpu_copy(self, indices, mamba_indices=None):
        if mamba_indices is not None:
            raise NotImplementedError("no state")
        return super().get_cpu_copy(indices)
    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
        if mamba_indices is not None:
            raise NotImplementedError("no state")
        super().load_cpu_copy(kv_cache_cpu, indices)
"""


def test_no_two_clauses_ask_for_different_refusals_of_state(downstream: Any) -> None:
    pool = 'Pool("p", partial(make_token, cls=NoState), kind="token", lacks=["state"]'
    result = downstream(f'[{pool}, level="strict")]', "-k", "state or lacks", classes=NO_STATE)
    assert result.parseoutcomes().get("failed", 0) == 0


# -- test_buffers: every tensor is seen --------------------------------------------------


def inventory(**tensors: Any) -> Inventory:
    return take_inventory(types.SimpleNamespace(**tensors), G, Plain())


def test_rows_that_lie_in_a_flat_allocation_are_found() -> None:
    n = G.token_rows * 7
    flat = torch.zeros(3 * n)
    layers = [flat[i * n : (i + 1) * n].view(G.token_rows, 7) for i in range(3)]
    told = inventory(flat=flat, k_buffer=layers)
    assert [(b.name, len(b.rows)) for b in told.buffers] == [("k", 3)]
    assert told.unaccounted == ()


def test_forgotten_part_of_a_shared_allocation_is_told() -> None:
    n = G.token_rows * 7
    flat = torch.zeros(n + 50)
    told = inventory(k_buffer=[flat[:n].view(G.token_rows, 7)], forgotten=flat[n:])
    assert told.unaccounted == ("forgotten",)


def test_views_side_by_side_in_one_allocation_are_all_found() -> None:
    kv = torch.zeros(3, G.token_rows, 7, 5)
    told = inventory(k_buffer=[layer[:, 0] for layer in kv], v_buffer=kv[:, :, 1])
    assert sorted((b.name, len(b.rows)) for b in told.buffers) == [("k", 3), ("v", 3)]


class Callable:
    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    "holder",
    [Callable(torch.zeros(3)), collections.deque([torch.zeros(3)])],
    ids=["object that can be called", "deque"],
)
def test_tensors_are_reached_through(holder: object) -> None:
    assert len(list(tensors_in(types.SimpleNamespace(holder=holder)))) == 1


# -- test_signatures, test_members -------------------------------------------------------


class Root:
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any: ...

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None: ...


def broken(rule: str, cls: type) -> list[str]:
    verbs = ("get_cpu_copy", "load_cpu_copy")
    members = member_of(Root, Root, verbs), member_of(cls, Root, verbs)
    return [problem.text for problem in RULES[rule](*members, verbs)]


def test_optional_argument_by_position_reaches_its_own_parameter() -> None:
    class Sub(Root):
        def get_cpu_copy(self, indices: Any, non_blocking: Any = False, **kwargs: Any) -> Any: ...

    assert broken("override_binds_by_position", Sub)


def test_verb_that_is_switched_off_breaks_a_rule() -> None:
    class Sub(Root):
        get_cpu_copy = None

    assert broken("override_accepts_every_keyword", Sub)


@pytest.mark.parametrize("text", ["raise RuntimeError('no NPU')", "import no_such_backend"])
def test_exempt_class_in_a_module_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, text: str
) -> None:
    name = f"engine_defect_{len(text)}"
    (tmp_path / name).mkdir()
    root = "class Root:\n def get_cpu_copy(self): ...\n def load_cpu_copy(self): ...\n"
    (tmp_path / name / "__init__.py").write_text(root)
    (tmp_path / name / "npu.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    engine = importlib.import_module(name)
    exempt = {f"{name}.npu.NPUPool": "needs an NPU"}
    found = members(Family(engine.Root, packages=[name], exempt=exempt))
    assert set(found.unimportable) == {f"{name}.npu"}
    assert found.stale == ()


# -- test_geometry, test_programs, test_index_sets, test_declarations --------------------


@pytest.mark.parametrize(
    "constraint",
    [{"page_sizes": ["64"]}, {"page_sizes": [-4]}, {"pages": [2.5]}, {"dtypes": ["bfloat16"]}],
    ids=str,
)
def test_constraint_of_another_type_is_refused_by_name(constraint: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^Pool 'p': {next(iter(constraint))}"):
        Pool("p", make_token, kind="token", **constraint)


def test_size_of_several_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="page_size='4x9'"):
        parse_geometry("page_size=4x9", Pool("p", make_token, kind="token"))


def test_offload_from_a_token_on_round_trips() -> None:
    program = Program((Offload("r0", "c0", start=3),))
    assert parse_program(str(program)) == program


def test_pool_of_one_state_row_is_tried_with_state() -> None:
    pool = Pool("p", make_hybrid, kind="hybrid", state_sizes=[1])
    drawn = scenarios.programs(pool, "cpu", scenarios.other_rows)
    find(
        drawn,
        lambda found: any(isinstance(s, Write) and s.state for s in found[1]),
        settings=settings(derandomize=True, database=None, max_examples=300),
    )


@pytest.mark.parametrize("pages", [1, 2])
def test_pool_of_few_rows_is_split(pages: int) -> None:
    pool = Pool("p", make_token, kind="token", page_sizes=[1], pages=[pages], layers=[5])
    drawn = scenarios.programs(pool, "cpu", scenarios.split)

    @settings(derandomize=True, database=None, deadline=None, max_examples=30)
    @given(drawn)
    def check(found: Any) -> None:
        geometry, program = found
        written = [s.rows for s in program if isinstance(s, Write)]
        assert all(row < geometry.token_rows for rows in written for row in rows)

    check()


def test_known_of_a_tensor_that_nobody_declared_needs_no_witness() -> None:
    known = {"every_tensor_is_accounted_for": Known("a table of addresses")}
    assert Pool("p", make_token, kind="token", known=known).known == known


def test_state_is_copied_in_a_pool_of_one_state_row() -> None:
    """There is no other row to copy it to."""
    pool = Pool("p", make_hybrid, kind="hybrid", state_sizes=[1])
    for seed in range(20):
        _, program = seeded(pool, scenarios.state_copied, seed)
        assert not any(isinstance(step, CopyState) for step in program)
        assert any(isinstance(step, Reload) for step in program)
