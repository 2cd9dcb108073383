"""A program on a pool, beside the model: what is told of each step."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from drawn_programs import ALLOCATORS, POOLS, pool_of, seeded
from torch import Tensor

from conformance import Pool, scenarios
from conformance.contract import CLAUSES
from conformance.geometry import geometries
from conformance.programs import parse_program
from conformance.runner import run
from conformance.troubles import StopProgram, Tally, Trouble
from reference_pools import HybridPool, TokenPool
from reference_pools.declarations import make_hybrid, make_token

Told = list[tuple[int, str, str]]


def troubles(pool: Pool, text: str) -> tuple[Told, Tally]:
    """What is told of each step, in the first geometry, and what was done."""
    found: list[Trouble] = []
    tally = run(pool, geometries(pool)[0], parse_program(text), found.append)
    assert {t.clause for t in found if t.clause} <= CLAUSES.keys()
    return [(t.step, t.clause or t.kind, t.what) for t in found], tally


def told(pool: Pool, text: str) -> Told:
    return troubles(pool, text)[0]


def steps_and_clauses(pool: Pool, text: str) -> list[tuple[int, str]]:
    return [(step, clause) for step, clause, _ in told(pool, text)]


def token(cls: type[TokenPool] = TokenPool, **declared: Any) -> Pool:
    return Pool("p", partial(make_token, cls=cls), kind="token", **declared)


# -- correct pools and allocators are not accused ------------------------------------------------


@pytest.mark.parametrize("name", [*POOLS, *ALLOCATORS])
def test_reference_pool_or_allocator_is_not_accused(name: str) -> None:
    allocator = ALLOCATORS.get(name)
    scenario = scenarios.lives if allocator is None else scenarios.allocations
    for seed in range(15):
        found: list[Trouble] = []
        geometry, program = seeded(name, scenario, seed)
        run(pool_of(name), geometry, program, found.append, allocator)
        assert not found, (found, str(program))


def test_tally_counts_what_was_reloaded() -> None:
    text = (
        "write r0 at 5..7; extend r0 at 9; retract r0 as c0; write r1 at 5; offload r1 as c1; "
        "resume r0 from c0 at 10..13; reload c1 at 8"
    )
    assert troubles(token(), text) == ([], Tally(programs=1, reloads=2, rows=5))


def test_steps_of_a_program_that_stops_are_not_counted() -> None:
    class Raises(TokenPool):
        def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
            raise RuntimeError

    def stop(trouble: Trouble) -> None:
        raise StopProgram

    pool = token(Raises)
    program = parse_program("write r0 at 5; retract r0 as c0; resume r0 from c0 at 6")
    assert run(pool, geometries(pool)[0], program, stop) == Tally(programs=1)


# -- request lives on a pool alone -----------------------------------------------------------------


def test_extended_request_is_offloaded_whole() -> None:
    class LosesTheLast(TokenPool):
        def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
            super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
            if len(indices) > 3:
                self.k[0][indices[-1]] = 0

    text = (
        "write r0 at 5..7; extend r0 at 9; retract r0 as c0; overwrite; resume r0 from c0 at 10..13"
    )
    ((step, kind, what),) = told(token(LosesTheLast), text)
    assert (step, kind) == (4, "payload")
    assert "row 13 of k, layer 1: holds zero bytes, expected token 3 of r0" in what


def test_moved_token_is_offloaded_with_its_new_bytes() -> None:
    text = (
        "write r0 at 5..7; move r0[2] to [0]; retract r0 as c0; overwrite; "
        "resume r0 from c0 at 8..10"
    )
    assert told(token(), text) == []

    class MovesNothing(TokenPool):
        def move_kv_cache(self, tgt_loc: Any, src_loc: Any) -> None: ...

    assert steps_and_clauses(token(MovesNothing), text) == [(1, "move_carries_the_payload")] * 2


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("k", "move_carries_the_payload"),
        ("index_k", "move_carries_companions"),
        ("elsewhere", "move_leaves_other_rows_alone"),
        ("raises", "move_accepts_every_token"),
    ],
)
def test_what_is_wrong_with_a_move_is_told_by_its_clause(name: str, clause: str) -> None:
    pool = POOLS["dsa" if name == "index_k" else "token"]

    def make(geometry: Any) -> Any:
        made = pool.make(geometry)
        verb = made.move_kv_cache

        def move(targets: Tensor, sources: Tensor) -> None:
            if name == "raises":
                raise KeyError("no move")
            kept = [layer.clone() for layer in getattr(made, name, [])]
            verb(targets, sources)
            for layer, rows in zip(getattr(made, name, []), kept, strict=True):
                layer.copy_(rows)
            if name == "elsewhere":
                made.v[1][20] = 0

        made.move_kv_cache = move
        return made

    declared = Pool("p", make, kind=pool.kind)
    found = steps_and_clauses(declared, "write r0 at 5..7; move r0[2] to [0]; free r0")
    assert found == [(1, clause)]


class KeepsState(HybridPool):
    """Its verbs on state rows reach one of two buffers, or raise."""

    fault = ""

    def _reach_conv_alone(self, verb: Any, *ids: Tensor) -> None:
        before = self.state.temporal.clone()
        if self.fault == "raises":
            raise ValueError("no")
        verb(*ids)
        if self.fault == "forgets":
            self.state.temporal.copy_(before)

    def copy_state(self, sources: Tensor, targets: Tensor) -> None:
        self._reach_conv_alone(super().copy_state, sources, targets)

    def zero_state(self, ids: Tensor) -> None:
        self._reach_conv_alone(super().zero_state, ids)


@pytest.mark.parametrize("fault", ["", "forgets", "raises"])
@pytest.mark.parametrize(
    ("step", "clause"),
    [
        ("copy state 3 to 4", "state_copy_copies_every_buffer"),
        ("zero state 3", "zeroed_state_is_zero"),
    ],
)
def test_verbs_on_state_rows_are_held_to_their_clause(step: str, clause: str, fault: str) -> None:
    cls = type("Faulty", (KeepsState,), {"fault": fault})
    pool = Pool("p", partial(make_hybrid, cls=cls), kind="hybrid")
    found = told(pool, f"write r0 at 5 state 3; {step}; free r0")
    assert [(at, broken) for at, broken, _ in found] == ([(1, clause)] if fault else [])
    if fault == "raises":
        assert found[0][2].startswith("raised ValueError: no (test_runner.py:")


def test_state_that_was_copied_travels_with_its_new_request() -> None:
    text = (
        "write r0 at 5 state 3; copy state 3 to 4; write r1 at 6 state 5; "
        "offload r1 as c1 state 4; overwrite; reload c1 at 7 state 2"
    )
    assert told(POOLS["hybrid"], text) == []


# -- steps that cannot be run ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        "extend r0 by 3",
        "resume r0 from c0",
        "share r0[:1] as r1",
        "slide r0[0:1]",
        "clear",
        "begin group",
        "end group",
        "compact",
        "overwrite ids",
    ],
)
def test_step_that_needs_an_allocator_is_named(step: str) -> None:
    with pytest.raises(ValueError, match="^program: ") as caught:
        told(token(), f"write r0 at 5; offload r0 as c0; {step}")
    assert str(caught.value) == f"program: {step!r} needs an allocator"


@pytest.mark.parametrize(
    "step",
    [
        "back up r0",
        "load r0 at 5..9",
        "await backup of r0",
        "poll load of r0",
        "use r0",
        "read r0",
        "drop r0",
        "refuse drop r0",
    ],
)
def test_step_that_needs_a_host_tier_is_named(step: str) -> None:
    with pytest.raises(ValueError, match="^program: ") as caught:
        told(token(), f"write r0 at 5; {step}")
    assert str(caught.value) == f"program: {step!r} needs a host tier"


# -- programs that were typed wrong ------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("write r0 at 5..6; move r0[9] to [0]", LookupError, "names token 9 of r0, which has 2"),
        ("write r0 at 99", LookupError, "r0 is written at row 99; the rows of this geometry are"),
        ("write r0 at 5; refuse free r0", ValueError, "'refuse free r0' needs an allocator"),
    ],
)
def test_step_that_cannot_be_is_told(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        told(token(), text)
