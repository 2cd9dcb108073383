"""A failing program is told in fewer steps, and under the clause that it breaks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from conformance import Pool
from conformance.diagnosis import diagnose, smallest
from conformance.fewest import fewest
from conformance.geometry import geometries
from conformance.programs import Program, Step, Write, parse_program
from conformance.runner import run
from conformance.troubles import StopProgram, Trouble
from reference_pools import DSAPool, HybridPool, TokenPool
from reference_pools.broken.sglang_37534 import NarrowHostRows
from reference_pools.declarations import make_dsa, make_hybrid, make_mla, make_token


def token(cls: type[TokenPool]) -> Pool:
    return Pool("p", partial(make_token, cls=cls), kind="token")


def first_trouble(pool: Pool, program: Program) -> Trouble:
    found: list[Trouble] = []

    def on_trouble(trouble: Trouble) -> None:
        found.append(trouble)
        raise StopProgram

    run(pool, geometries(pool)[0], program, on_trouble)
    return found[0]


def reduced(pool: Pool, text: str) -> tuple[str, str]:
    """The clause that this program breaks, and the program that is told."""
    geometry, program = geometries(pool)[0], parse_program(text)
    trouble = first_trouble(pool, program)
    clause = diagnose(pool, geometry, program, trouble)
    told, again = smallest(pool, geometry, program, trouble, clause)
    assert again.step == len(told.steps) - 1
    assert (again.kind, again.clause) == (trouble.kind, trouble.clause)
    assert first_trouble(pool, told) == again
    return clause, str(told)


class ReturnsToSource(TokenPool):
    """Reloads where the rows came from, whatever rows are given."""

    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        return replace(copy, chunks=copy.chunks | {"from": [[indices.clone()]]})

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        super().load_cpu_copy(kv_cache_cpu, kv_cache_cpu.chunks["from"][0][0], mamba_indices)


class ZeroesOnOffload(TokenPool):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        self.k[0][indices] = 0
        return copy


class LosesState(HybridPool):
    """Reloads the attention and leaves the state as it is."""

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        before = [buffer.clone() for buffer in (self.state.conv, self.state.temporal)]
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        self.state.conv.copy_(before[0])
        self.state.temporal.copy_(before[1])


class LeaksBeyondFour(TokenPool):
    """Its reload of more than four tokens writes a row that is not its own."""

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        if len(indices) > 4:
            self.k[0][self.token_rows - 1] = 0


NARROW = Pool("narrow", partial(make_mla, cls=NarrowHostRows), kind="mla")
STATE = Pool("state", partial(make_hybrid, cls=LosesState), kind="hybrid")

ONE_TOKEN = "write r0 at 5; offload r0 as c0; overwrite; reload c0 at 8"


@pytest.mark.parametrize(
    ("pool", "text", "clause", "told"),
    [
        (
            NARROW,
            "write r0 at 5; extend r0 at 6..7; move r0[2] to [0]; retract r0 as c0; "
            "write r1 at 5..9; free r1; resume r0 from c0 at 8..10",
            "reload_restores_the_same_rows",
            ONE_TOKEN,
        ),
        (
            token(ReturnsToSource),
            "write r0 at 5; extend r0 at 9; write r1 at 20; retract r0 as c0; "
            "write r2 at 5,9; free r2; resume r0 from c0 at 8,5",
            "reload_restores_other_rows",
            ONE_TOKEN,
        ),
        (
            STATE,
            "write r0 at 5 state 3; extend r0 at 6; retract r0 as c0; write r1 at 9 state 3; "
            "resume r0 from c0 at 7..8 state 4",
            "state_travels",
            "write r0 at 5 state 3; offload r0 as c0 state 3; overwrite; reload c0 at 7 state 4",
        ),
        (
            token(LeaksBeyondFour),
            "write r0 at 5..7; extend r0 at 9..10; move r0[4] to [0]; offload r0 as c0; "
            "extend r0 at 11; resume r1 from c0 at 20..24",
            "reload_leaves_other_rows_alone",
            "write r0 at 5..7,9..10; offload r0 as c0; overwrite; reload c0 at 20..24",
        ),
    ],
    ids=["bytes", "rows", "state", "outside"],
)
def test_failing_resume_is_told_as_one_reload(
    pool: Pool, text: str, clause: str, told: str
) -> None:
    assert reduced(pool, text) == (clause, told)


def test_request_that_was_resumed_and_extended_is_written_whole() -> None:
    """The copy is of what it held then, in the rows that it was resumed into."""
    text = (
        "write r0 at 5..7; retract r0 as c0; resume r0 from c0 at 8..10; extend r0 at 20..21; "
        "retract r0 as c1; overwrite; resume r0 from c1 at 11..15"
    )
    assert reduced(token(LeaksBeyondFour), text) == (
        "reload_leaves_other_rows_alone",
        "write r0 at 8..10,20..21; offload r0 as c1; overwrite; reload c1 at 11..15",
    )


def test_failing_retract_is_told_as_one_offload() -> None:
    text = "write r0 at 5; extend r0 at 9; move r0[1] to [0]; write r1 at 7; retract r0 as c0"
    assert reduced(token(ZeroesOnOffload), text) == (
        "offload_changes_nothing",
        "write r0 at 5; offload r0 as c0",
    )


class RaisesForGaps(TokenPool):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        if len(indices) > 1 and int(indices.diff().max()) > 1:
            raise RuntimeError("not one run")
        return super().get_cpu_copy(indices, mamba_indices)


def test_retract_that_raises_is_told_as_one_offload() -> None:
    text = (
        "write r0 at 5; extend r0 at 9; write r1 at 7; retract r0 as c0; resume r0 from c0 at 5,6"
    )
    assert reduced(token(RaisesForGaps), text) == (
        "any_rows_in_any_order",
        "write r0 at 5,9; offload r0 as c0",
    )


# -- what only the whole program shows -----------------------------------------------------


class KeysCopiesByRows(TokenPool):
    """Knows a copy by the rows that it came from: a newer one from them replaces it."""

    def __init__(self, **geometry: Any) -> None:
        super().__init__(**geometry)
        self.held: dict[tuple[int, ...], Any] = {}

    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        chunks = self.held.setdefault(tuple(indices.tolist()), {})
        chunks.update(copy.chunks)
        return replace(copy, chunks=chunks)


class LosesWhatGoesOn(DSAPool):
    """A copy that goes on in the page where the last one ended lacks its first row."""

    last = -1

    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        if len(indices) and indices[0] == self.last + 1 and indices[0] % self.page_size:
            for chunks in copy.chunks["latent"]:
                chunks[0][0] = 0
        self.last = int(indices[-1]) if len(indices) else -1
        return copy


class KeepsTheNewest(TokenPool):
    """Whatever copy it is given, it reloads the one made last."""

    newest: Any = None

    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        self.newest = super().get_cpu_copy(indices, mamba_indices)
        return self.newest

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        super().load_cpu_copy(self.newest, indices, mamba_indices)


class MirrorsBeforeMoves(TokenPool):
    """Offloads from a mirror that moves do not reach."""

    mirror: Any = None

    def move_kv_cache(self, tgt_loc: Any, src_loc: Any) -> None:
        self.mirror = [layer.clone() for layer in self.k]
        super().move_kv_cache(tgt_loc, src_loc)

    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        if self.mirror is None:
            return super().get_cpu_copy(indices, mamba_indices)
        now, self.k = self.k, self.mirror
        copy = super().get_cpu_copy(indices, mamba_indices)
        self.k, self.mirror = now, None
        return copy


@pytest.mark.parametrize(
    ("pool", "text", "clause", "told"),
    [
        (
            token(KeysCopiesByRows),
            "write r0 at 5,9; offload r0 as c0; move r0[1] to [0]; offload r0 as c1; "
            "overwrite; resume r1 from c0 at 7..8",
            "copies_are_independent",
            "write r0 at 5,9; offload r0 as c0; move r0[1] to [0]; offload r0 as c1; "
            "resume r1 from c0 at 7..8",
        ),
        (
            token(KeysCopiesByRows),
            "write r0 at 5; extend r0 at 6; retract r0 as c0; write r1 at 5..6; "
            "retract r1 as c1; resume r0 from c0 at 7..8",
            "copies_are_independent",
            "write r0 at 5; extend r0 at 6; retract r0 as c0; write r1 at 5..6; "
            "retract r1 as c1; resume r0 from c0 at 7..8",
        ),
        (
            Pool("p", partial(make_dsa, cls=LosesWhatGoesOn), kind="dsa"),
            "write r0 at 5..12; offload r0[0:3] as c0; offload r0[3:8] as c1; overwrite; "
            "reload c0 at 10..12; reload c1 at 13..17",
            "splitting_gives_the_whole",
            "write r0 at 5..12; offload r0[0:3] as c0; offload r0[3:8] as c1; reload c1 at 13..17",
        ),
        (
            token(KeepsTheNewest),
            "write r0 at 5..8; offload r0[0:2] as c0; offload r0[2:4] as c1; overwrite; "
            "reload c0 at 10..11",
            "copies_are_independent",
            "write r0 at 5..8; offload r0[0:2] as c0; offload r0[2:4] as c1; reload c0 at 10..11",
        ),
        (
            token(MirrorsBeforeMoves),
            "write r0 at 5..7; write r1 at 9; move r0[2] to [0]; retract r0 as c0; "
            "extend r1 at 10; overwrite; resume r0 from c0 at 8,5,6",
            "resume_restores_the_request",
            "write r0 at 5..7; move r0[2] to [0]; retract r0 as c0; resume r0 from c0 at 8,5..6",
        ),
    ],
    ids=["fork and move", "two requests", "two parts", "parts as copies", "move before the copy"],
)
def test_failure_that_needs_company_keeps_what_it_needs(
    pool: Pool, text: str, clause: str, told: str
) -> None:
    assert reduced(pool, text) == (clause, told)


def test_steps_behind_the_failure_are_not_told() -> None:
    text = "write r0 at 5..6; retract r0 as c0; overwrite; resume r0 from c0 at 8..9"
    clause, told = reduced(token(ReturnsToSource), f"{text}; extend r0 at 20; retract r0 as c1")
    assert (clause, told) == ("reload_restores_other_rows", ONE_TOKEN)


class ForgetsValues(TokenPool):
    def move_kv_cache(self, tgt_loc: Any, src_loc: Any) -> None:
        kept = [layer[tgt_loc].clone() for layer in self.v]
        super().move_kv_cache(tgt_loc, src_loc)
        for layer, rows in zip(self.v, kept, strict=True):
            layer[tgt_loc] = rows


def test_failing_move_keeps_what_it_moves() -> None:
    text = "write r0 at 5..7; write r1 at 20; extend r0 at 9; move r0[3] to [0]; retract r0 as c0"
    told = "write r0 at 5..7; extend r0 at 9; move r0[3] to [0]"
    assert reduced(token(ForgetsValues), text) == ("move_carries_the_payload", told)


def test_reduced_program_shows_the_same_bytes_as_wrong() -> None:
    """The evidence is that of the program that is told, not of the one that was drawn."""
    program = parse_program(
        "write r0 at 5; extend r0 at 6; retract r0 as c0; overwrite; resume r0 from c0 at 8..9"
    )
    geometry = geometries(NARROW)[0]
    trouble = first_trouble(NARROW, program)
    _, again = smallest(NARROW, geometry, program, trouble, "reload_restores_the_same_rows")
    assert "token row 8 of latent" in again.what
    assert "expected token 0 of r0 (latent, layer 1, row 5, write 1)" in again.what
    assert (trouble.step, again.step) == (4, 3)


# -- the fewest steps -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needed", "told"),
    [
        ([], "clear"),
        (["free r1"], "free r1; clear"),
        (["extend r0 by 1", "free r1"], "extend r0 by 1; free r1; clear"),
        (["begin group", "end group"], "begin group; end group; clear"),
    ],
)
def test_steps_that_are_not_needed_are_left_out(needed: list[str], told: str) -> None:
    steps = parse_program(
        "extend r0 by 1; extend r1 by 2; begin group; free r0; end group; free r1; "
        "share r2[:4] as r3; retract r3 as c0; compact; clear"
    ).steps

    def shows(tried: tuple[Step, ...]) -> bool:
        left = [str(step) for step in tried]
        return left[-1] == "clear" and all(step in left for step in needed)

    assert str(Program(fewest(steps, shows))) == told


def test_steps_without_which_another_names_nothing_are_kept() -> None:
    steps = parse_program("write r0 at 5; write r1 at 6; free r0").steps

    def shows(tried: tuple[Step, ...]) -> bool:
        written = {step.request: step for step in tried if isinstance(step, Write)}
        return written["r0"] is not None

    assert str(Program(fewest(steps, shows))) == "write r0 at 5; free r0"
