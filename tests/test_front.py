"""An allocator in front of a pool: which clause each of its faults is told by, and when."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from drawn_programs import ALLOCATORS
from torch import Tensor

from conformance import Allocator
from conformance.contract import CLAUSES
from conformance.geometry import geometries
from conformance.programs import parse_program
from conformance.runner import run
from conformance.troubles import Tally, Trouble
from reference_pools.allocators import PagedAllocator, SlidingWindowAllocator

PAGED, WINDOW = ALLOCATORS["paged-ids"], ALLOCATORS["window-ids"]
Told = list[tuple[int, str, str]]


def troubles(allocator: Allocator, text: str) -> tuple[Told, Tally]:
    """What is told of each step, in the first geometry of the pool, and what was done."""
    found: list[Trouble] = []
    geometry, program = geometries(allocator.pool)[0], parse_program(text)
    tally = run(allocator.pool, geometry, program, found.append, allocator)
    assert {trouble.clause for trouble in found if trouble.clause} <= CLAUSES.keys()
    return [(t.step, t.clause or t.kind, t.what) for t in found], tally


def told(allocator: Allocator, text: str) -> Told:
    return troubles(allocator, text)[0]


def paged(cls: type[PagedAllocator]) -> Allocator:
    return Allocator("a", cls, PAGED.pool)


def test_tally_counts_what_was_handed_out_and_reloaded() -> None:
    text = "extend r0 by 7; retract r0 as c0; extend r1 by 5; resume r2 from c0; clear"
    assert troubles(PAGED, text) == ([], Tally(programs=1, reloads=1, rows=7, ids=19))


# -- steps that are not run -----------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        "write r0 at 5",
        "extend r0 at 5",
        "offload r0 as c0",
        "reload c0 at 5",
        "move r0[1] to [0]",
        "copy state 1 to 2",
        "refuse move r0[1] to [0]",
    ],
)
def test_step_that_names_rows_is_not_for_an_allocator(step: str) -> None:
    with pytest.raises(ValueError, match="names rows; an allocator chooses them$") as caught:
        told(PAGED, f"extend r0 by 2; {step}")
    assert str(caught.value).startswith(f"program: {step!r} ")


@pytest.mark.parametrize(
    "step",
    [
        "free r9",
        "retract r9 as c9",
        "retract r9 as c9; resume r8 from c9",
        "share r9[:5] as r8",
        "share r0[:10] as r8",
        "slide r0[5:10]",
        "refuse free r9",
        "free r0[5:]",
    ],
)
def test_step_of_a_request_that_got_no_ids_does_nothing(step: str) -> None:
    """There was no room for it, as may happen where two id spaces are full at once."""
    after = "extend r1 by 1; free r0,r1; extend r2 by 25"
    assert told(PAGED, f"extend r0 by 5; extend r9 by 30; {step}; {after}") == []


# -- faults ---------------------------------------------------------------------------------


class HandsOutTooMuch(PagedAllocator):
    def alloc(self, count: int, held: Any = None) -> Any:
        ids = super().alloc(count, held)
        return torch.arange(5, 5 + count) if ids is None else ids


class HasLessRoom(PagedAllocator):
    def alloc(self, count: int, held: Any = None) -> Any:
        return None if count > 10 else super().alloc(count, held)


class Leaks(PagedAllocator):
    def free(self, ids: Tensor) -> None:
        super().free(ids[:-1] if len(ids) > 5 else ids)


class FreesTwice(PagedAllocator):
    def end_free_group(self) -> None:
        self.free_list.free_pages += self.free_list.pending or []
        super().end_free_group()


class FreesAtOnce(PagedAllocator):
    def begin_free_group(self) -> None: ...

    def end_free_group(self) -> None: ...


class KeepsTheGroup(PagedAllocator):
    def clear(self) -> None:
        pending = self.free_list.pending
        super().clear()
        self.free_list.pending = pending


class ForgetsTheSharer(PagedAllocator):
    def retain(self, ids: Tensor) -> None:
        self.free_list.check_in_use("ids", ids)


class HandsOutItsOwnIds(PagedAllocator):
    def __init__(self, pool: Any) -> None:
        super().__init__(pool)
        self.ids = torch.empty(0, dtype=torch.int64)

    def alloc(self, count: int, held: Any = None) -> Any:
        ids = super().alloc(count, held)
        if ids is not None and count:
            self.ids = ids
        return ids


class WritesIntoIds(HandsOutItsOwnIds):
    def free(self, ids: Tensor) -> None:
        super().free(ids)
        self.ids.fill_(7)


class RefusesNoIds(PagedAllocator):
    def free(self, ids: Tensor) -> None:
        if not len(ids):
            raise ValueError("no ids")
        super().free(ids)


class DropsTheCopy(PagedAllocator):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None: ...


class HasNoVerbs(PagedAllocator):
    get_cpu_copy = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("cls", "text", "found"),
    [
        (
            HandsOutTooMuch,
            "extend r0 by 25; extend r1 by 1",
            [(1, "exhaustion_changes_nothing", "1 ids were handed out, but 0 are free")],
        ),
        (
            HasLessRoom,
            "extend r0 by 10; extend r1 by 11",
            [(1, "capacity_can_be_used", "None was returned for 11 ids, and 15 are free")],
        ),
        (
            Leaks,
            "extend r0 by 6; free r0",
            [(1, "ids_are_conserved", "20 are free, expected 25: 0 of 25 are owned")],
        ),
        (
            FreesTwice,
            "extend r0 by 6; begin group; free r0; end group",
            [
                (
                    3,
                    "free_groups_free_at_the_end",
                    "35 are free, expected 25: 0 of 25 are owned",
                )
            ],
        ),
        (FreesAtOnce, "extend r0 by 6; begin group; free r0; end group; extend r1 by 25", []),
        (
            ForgetsTheSharer,
            "extend r0 by 5; share r0[:5] as r1; free r0",
            [
                (
                    2,
                    "shared_ids_outlive_one_owner",
                    "25 are free, expected 20: 5 of 25 are owned",
                )
            ],
        ),
        (
            HandsOutItsOwnIds,
            "extend r0 by 2",
            [(0, "ids_are_their_own_memory", "the ids are a view of the allocator's ids")],
        ),
        (
            RefusesNoIds,
            "extend r0 by 0; free r0",
            [(1, "freeing_nothing_is_legal", "raised ValueError: no ids (test_front.py:")],
        ),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_fault_of_an_allocator_is_told_by_its_clause(cls: Any, text: str, found: Told) -> None:
    told_ = [(at, clause, what) for at, clause, what in told(paged(cls), text)]
    assert [(at, clause) for at, clause, _ in told_] == [(at, clause) for at, clause, _ in found]
    for (_, _, what), (_, _, expected) in zip(told_, found, strict=True):
        assert what.startswith(expected)


@pytest.mark.parametrize("cls", [PagedAllocator, FreesAtOnce])
def test_what_an_open_group_has_freed_may_be_handed_out_or_not(cls: Any) -> None:
    text = "extend r0 by 25; begin group; free r0; extend r1 by 5; end group; extend r2 by 20"
    assert told(paged(cls), text) == []


def test_what_a_closed_group_has_freed_is_handed_out() -> None:
    text = "extend r0 by 25; begin group; free r0; end group; extend r1 by 25"
    assert told(paged(PagedAllocator), text) == []
    ((at, clause, what),) = told(paged(HasLessRoom), text.replace("r0 by 25", "r0 by 30", 1))
    assert (at, clause) == (4, "capacity_can_be_used")
    assert what == "None was returned for 25 ids, and 25 are free"


def test_clear_must_end_the_free_group() -> None:
    text = "extend r0 by 6; begin group; free r0; clear; begin group"
    (at, clause, what), *_ = told(paged(KeepsTheGroup), text)
    assert (at, clause) == (4, "free_groups_free_at_the_end")
    assert what.startswith("raised RuntimeError: a free group is open already")


def test_ids_that_change_in_the_callers_hand_are_told() -> None:
    found = told(paged(WritesIntoIds), "extend r0 by 2; free r0")
    assert [(at, clause) for at, clause, _ in found] == [
        (0, "ids_are_their_own_memory"),
        (1, "ids_keep_their_values"),
    ]
    assert found[1][2] == "ids that were [5, 6] are [7, 7] now"


def test_reload_that_the_allocator_does_not_forward_is_told() -> None:
    text = "extend r0 by 6; retract r0 as c0; extend r1 by 5; resume r2 from c0"
    (at, kind, what), *_ = told(paged(DropsTheCopy), text)
    assert (at, kind) == (3, "payload")
    assert "expected token 0 of r0" in what


def test_verb_that_the_allocator_lacks_is_told() -> None:
    found = told(paged(HasNoVerbs), "extend r0 by 6; retract r0 as c0")
    assert [(at, clause) for at, clause, _ in found] == [(1, "allocator_forwards_the_verbs")]


def test_window_rows_are_where_the_mapping_says_after_every_step() -> None:
    class ForgetsTheMapping(SlidingWindowAllocator):
        def release_window(self, ids: Tensor) -> None:
            mapping = self.pool.mapping.clone()
            super().release_window(ids)
            self.pool.mapping.copy_(mapping)

    text = "extend r0 by 10; slide r0[0:5]; free r0"
    assert told(WINDOW, text) == []
    broken = Allocator("a", ForgetsTheMapping, WINDOW.pool, kind="window")
    (at, clause, _), *_ = told(broken, text)
    assert (at, clause) == (1, "mapping_dies_with_its_page")
