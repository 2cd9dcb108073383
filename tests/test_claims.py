"""What is claimed of a pool is checked: that it lacks something, or that it fails."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from conformance import Known, Pool
from conformance.case import Case
from conformance.claims import check_accounting, check_lacks
from conformance.contract import CLAUSES
from conformance.geometry import geometries
from conformance.programs import parse_program
from conformance.scenarios import other_rows
from conformance.violation import Violation
from reference_pools import HybridPool, TokenPool
from reference_pools.broken.sglang_37534 import NarrowHostRows
from reference_pools.declarations import make_hybrid, make_mla, make_token

TRIP = "write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5"


def token(cls: type[TokenPool] = TokenPool, **declared: Any) -> Pool:
    return Pool("p", partial(make_token, cls=cls), kind="token", **declared)


def hybrid(cls: type[HybridPool], **declared: Any) -> Pool:
    return Pool("p", partial(make_hybrid, cls=cls), kind="hybrid", **declared)


def narrow(**known: str) -> Pool:
    """Breaks `reload_restores_the_same_rows`; `known` are clauses and their witnesses."""
    entries = {clause: Known("narrow rows", witness) for clause, witness in known.items()}
    return Pool("p", partial(make_mla, cls=NarrowHostRows), kind="mla", known=entries)


def case(pool: Pool, clause: str, level: Any = "required", replay: str | None = None) -> Case:
    return Case(pool, CLAUSES[clause], "cpu", level, 1, replay)


def found(check: Any, *arguments: Any) -> str:
    """What the violation that `check` raises says it has found."""
    with pytest.raises(Violation) as caught:
        check(*arguments)
    return next(
        line.split("found", 1)[1].strip()
        for line in str(caught.value).splitlines()
        if line.startswith("  found")
    )


# -- lacks ------------------------------------------------------------------------


class Refuses(TokenPool):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        raise NotImplementedError

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        raise NotImplementedError


class RefusesOffload(TokenPool):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        raise NotImplementedError


class RefusesReload(TokenPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        raise NotImplementedError


class ChangesBeforeOffload(Refuses):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        self.k[0][indices] = 0
        raise NotImplementedError


class ChangesBeforeReload(Refuses):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        self.v[2][indices] = 0
        raise NotImplementedError


class RefusesState(HybridPool):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        if mamba_indices is not None:
            raise NotImplementedError
        return super().get_cpu_copy(indices)

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        if mamba_indices is not None:
            raise NotImplementedError
        super().load_cpu_copy(kv_cache_cpu, indices)


class RefusesTheRest(HybridPool):
    def _lacking(self, *given: Any) -> None:
        raise NotImplementedError

    move_kv_cache = copy_state = zero_state = _lacking


class MovesFirst(TokenPool):
    def move_kv_cache(self, tgt_loc: Any, src_loc: Any) -> None:
        super().move_kv_cache(tgt_loc, src_loc)
        raise NotImplementedError


@pytest.mark.parametrize(
    ("pool", "calls"),
    [
        (token(Refuses, lacks=["offload"]), 2),
        (hybrid(RefusesState, lacks=["state"]), 2),
        (hybrid(RefusesTheRest, lacks=["move"]), 1),
        (hybrid(RefusesTheRest, lacks=["copy_state", "zero_state"]), 2),
        (token(), 0),
    ],
    ids=["offload", "state", "move", "state rows", "nothing"],
)
def test_pool_that_refuses_what_it_lacks(pool: Pool, calls: int) -> None:
    checked = case(pool, "lacks_is_refused_first")
    check_lacks(checked)
    assert checked.tally.programs == calls


@pytest.mark.parametrize(
    ("pool", "told"),
    [
        (
            token(lacks=["offload"]),
            "offload was accepted: delete 'offload' from lacks",
        ),
        (
            hybrid(HybridPool, lacks=["state"]),
            "offload was accepted: delete 'state' from lacks",
        ),
        (
            token(lacks=["move"]),
            "move was accepted: delete 'move' from lacks",
        ),
        (
            hybrid(HybridPool, lacks=["copy_state"]),
            "copy_state was accepted: delete 'copy_state' from lacks",
        ),
        (
            hybrid(HybridPool, lacks=["zero_state"]),
            "zero_state was accepted: delete 'zero_state' from lacks",
        ),
        (
            token(RefusesOffload, lacks=["offload"]),
            "reload raised TypeError, expected NotImplementedError: "
            "expected a HostCopy, got NoneType",
        ),
        (
            token(RefusesReload, lacks=["offload"]),
            "offload was accepted: delete 'offload' from lacks",
        ),
        (
            token(lacks=["state"]),
            "offload raised ValueError, expected NotImplementedError: "
            "this pool holds no state, but was given mamba_indices tensor([1])",
        ),
    ],
    ids=[
        "accepts",
        "accepts state",
        "accepts move",
        "accepts copy_state",
        "accepts zero_state",
        "reload raises another",
        "half",
        "another error",
    ],
)
def test_pool_that_does_not_refuse_what_it_lacks(pool: Pool, told: str) -> None:
    assert found(check_lacks, case(pool, "lacks_is_refused_first")) == told


@pytest.mark.parametrize(
    ("cls", "verb", "told"),
    [
        (ChangesBeforeOffload, "offload", "offload refused, but first it changed token row 5 of k"),
        (ChangesBeforeReload, "offload", "reload refused, but first it changed token row 5 of v"),
        (MovesFirst, "move", "move refused, but first it changed token row 6 of k, layer 1:"),
    ],
)
def test_pool_that_refuses_after_a_change(cls: type[TokenPool], verb: str, told: str) -> None:
    checked = case(token(cls, lacks=[verb]), "lacks_is_refused_first")
    assert found(check_lacks, checked).startswith(told)


def test_pool_that_says_nothing_of_what_it_refuses() -> None:
    checked = case(token(Refuses), "every_verb_works", replay=TRIP)
    told = found(checked.check, None, other_rows)
    assert told.startswith("raised NotImplementedError (test_claims.py:")
    assert told.endswith("no `lacks` says that it is not supported")


# -- accounting -------------------------------------------------------------------


class ForgetsScales(TokenPool):
    def __init__(self, **geometry: Any) -> None:
        super().__init__(**geometry)
        self.scales = self.allocate(1)


def test_tensor_that_no_buffer_holds_is_told() -> None:
    checked = case(token(ForgetsScales), "every_tensor_is_accounted_for")
    told = found(check_accounting, checked)
    assert told == "scales[0], scales[1], scales[2]: nobody declared"


@pytest.mark.parametrize("pool", [token(), hybrid(HybridPool)], ids=["token", "hybrid"])
def test_pool_whose_tensors_are_all_declared(pool: Pool) -> None:
    checked = case(pool, "every_tensor_is_accounted_for")
    check_accounting(checked)
    assert checked.tally.programs == 2


# -- known ------------------------------------------------------------------------


def test_known_failure_runs_its_witness_alone() -> None:
    checked = case(narrow(reload_restores_the_same_rows=TRIP), "reload_restores_the_same_rows")
    with pytest.raises(Violation) as caught:
        checked.check(None, other_rows)  # type: ignore[arg-type]
    assert caught.value.clause == "reload_restores_the_same_rows"
    assert f"| {TRIP}'" in str(caught.value)


def test_known_failure_met_by_another_check_is_counted() -> None:
    pool = narrow(reload_restores_the_same_rows=TRIP)
    checked = case(pool, "offload_changes_nothing")
    checked.run(geometries(pool)[0], parse_program(TRIP))
    assert (checked.tally.known, checked.tally.programs, checked.tally.rows) == (1, 1, 1)


def test_unknown_failure_met_by_another_check_is_not_tolerated() -> None:
    pool = narrow(offload_changes_nothing=TRIP)
    with pytest.raises(Violation) as caught:
        case(pool, "copies_are_independent").run(geometries(pool)[0], parse_program(TRIP))
    assert caught.value.clause == "reload_restores_the_same_rows"


def test_witness_that_breaks_another_clause_tells_that_one() -> None:
    checked = case(narrow(offload_changes_nothing=TRIP), "offload_changes_nothing")
    with pytest.raises(Violation) as caught:
        checked.check(None, other_rows)  # type: ignore[arg-type]
    assert caught.value.clause == "reload_restores_the_same_rows"


def test_witness_that_no_longer_fails_raises_nothing() -> None:
    known = {"reload_restores_the_same_rows": Known("narrow rows", TRIP)}
    checked = case(token(known=known), "reload_restores_the_same_rows")
    checked.check(None, other_rows)  # type: ignore[arg-type]
    assert (checked.tally.programs, checked.tally.rows) == (1, 1)


def test_witness_may_name_its_geometry() -> None:
    witness = f"page_size=3 size=27 | {TRIP.replace('5', '28')}"
    checked = case(narrow(reload_restores_the_same_rows=witness), "reload_restores_the_same_rows")
    with pytest.raises(Violation, match="geometry  size=27 page_size=3 ") as caught:
        checked.check(None, other_rows)  # type: ignore[arg-type]
    assert "token row 28 of latent" in str(caught.value)


# -- level and replay --------------------------------------------------------------


class Lenient(TokenPool):
    """Takes ids of any dtype."""

    def check_tokens(self, indices: Any) -> None: ...

    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        return super().get_cpu_copy(indices.long())

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        super().load_cpu_copy(kv_cache_cpu, indices.long())


FLOATS = "write r0 at 5; offload r0 as c0; overwrite; refuse reload c0 at 5 float32"


def test_strict_clause_is_not_asked_of_a_required_pool() -> None:
    pool = token(Lenient)
    program = parse_program(FLOATS)
    case(pool, "every_verb_works").run(geometries(pool)[0], program)
    with pytest.raises(Violation) as caught:
        case(pool, "every_verb_works", "strict").run(geometries(pool)[0], program)
    assert caught.value.clause == "wrong_dtype_is_refused"


def test_replay_runs_one_program_and_draws_nothing() -> None:
    checked = case(token(), "every_verb_works", replay=f"page_size=4 size=20 | {TRIP}")
    checked.check(None, other_rows)  # type: ignore[arg-type]
    assert (checked.tally.programs, checked.tally.reloads, checked.tally.rows) == (1, 1, 1)


@pytest.mark.parametrize(
    ("replay", "message"),
    [
        ("wrote r0 at 5", "program: cannot read the step 'wrote r0 at 5'"),
        ("pagesize=4 | overwrite", "geometry: 'pagesize=4' is not size=value"),
        ("page_size=x | overwrite", "geometry: page_size='x' is not a whole number"),
    ],
)
def test_replay_that_cannot_be_read(replay: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        case(token(), "every_verb_works", replay=replay).check(None, other_rows)  # type: ignore[arg-type]
