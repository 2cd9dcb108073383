"""What single kinds of allocator add: pages, state, host rows, virtual ids, the verbs."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from allocator_cases import (
    PAGE,
    PAGED,
    SERVES_A_POOL,
    SIZE,
    ids,
    make,
    snapshot,
    state_pool,
    token_pool,
)

from reference_pools import HybridPool
from reference_pools.allocators import (
    FreeList,
    HostAllocator,
    PagedAllocator,
    StateSlotAllocator,
    TokenAllocator,
)

each_paged = pytest.mark.parametrize("kind", PAGED)

# -- tokens and pages -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (3, 1, [7]),
        (1, 2, [5, 6]),
        (2, 7, [6, 7, 8, 9, 10, 11, 12]),
        (4, 1, [8]),
        (6, 2, [10, 11]),
        (6, 3, [10, 11, 12]),
    ],
)
@each_paged
def test_last_page_is_filled_first(kind: str, first: int, second: int, expected: Any) -> None:
    allocator = make(kind)
    held = allocator.alloc(first)
    taken = allocator.alloc(second, held.int())
    assert taken.tolist() == expected
    assert allocator.available() == SIZE - PAGE * len({i // PAGE for i in held.tolist() + expected})


@each_paged
def test_rest_of_the_last_page_needs_no_room(kind: str) -> None:
    allocator = make(kind)
    held = allocator.alloc(SIZE - 3)
    assert allocator.available() == 0
    assert allocator.alloc(4, held) is None
    assert allocator.alloc(3, held).tolist() == [21, 22, 23]


@each_paged
def test_page_is_free_when_none_of_its_ids_is_in_use(kind: str) -> None:
    allocator = make(kind)
    taken = allocator.alloc(6)
    for position in (5, 1, 2, 0):
        allocator.free(taken[position : position + 1])
        assert allocator.available() == SIZE - 2 * PAGE
    allocator.free(taken[4:5])
    assert allocator.available() == SIZE - PAGE
    allocator.free(taken[3:4])
    assert allocator.available() == SIZE


@each_paged
def test_request_that_was_cut_short_grows_again(kind: str) -> None:
    allocator = make(kind)
    taken = allocator.alloc(7)
    allocator.free(taken[5:])
    assert torch.equal(allocator.alloc(2, taken[:5]), taken[5:])


@each_paged
def test_whole_pages_are_shared_and_continued(kind: str) -> None:
    allocator = make(kind)
    taken = allocator.alloc(6)
    allocator.retain(taken[:PAGE])
    assert allocator.alloc(2, taken[:PAGE]).tolist() == [12, 13]
    assert allocator.alloc(1, taken).tolist() == [10]


@each_paged
def test_shared_part_of_a_page_is_not_continued(kind: str) -> None:
    allocator = make(kind)
    taken = allocator.alloc(7)
    allocator.retain(taken[:6])
    before = snapshot(allocator)
    message = "held ends at 10, but 8 of the same page has 2 owners: only a full page can be "
    with pytest.raises(ValueError, match=f"^{message}shared and continued$"):
        allocator.alloc(1, taken)
    assert allocator.alloc(0, taken).tolist() == []
    assert snapshot(allocator) == before


@each_paged
def test_ids_in_use_are_not_handed_out_to_a_request_that_hides_them(kind: str) -> None:
    allocator = make(kind)
    taken = allocator.alloc(8)
    allocator.free(taken[5:7])
    before = snapshot(allocator)
    with pytest.raises(ValueError, match="^held ends at 8, but 11 of the same page is in use$"):
        allocator.alloc(1, taken[:5])
    assert snapshot(allocator) == before


def test_tokens_need_no_page() -> None:
    allocator = TokenAllocator(token_pool())
    held = allocator.alloc(SIZE)
    allocator.free(held[[1, 9]])
    assert allocator.available() == 2
    assert allocator.alloc(2, held[:1]).tolist() == [13, 5]


@pytest.mark.parametrize(("size", "page_size"), [(0, 4), (-4, 4), (6, 4), (4, 0), (4, -4)])
def test_illegal_size_is_named(size: int, page_size: int) -> None:
    message = f"^size {size} is not a positive multiple of page_size {page_size}$"
    with pytest.raises(ValueError, match=message):
        FreeList(size=size, page_size=page_size, first=0, device="cpu")
    with pytest.raises(ValueError, match=message):
        HostAllocator(size=size, page_size=page_size)


# -- state --------------------------------------------------------------------------


def dirty_slots() -> StateSlotAllocator:
    """An allocator whose slots were all in use; their rows are dirty."""
    allocator = StateSlotAllocator(state_pool())
    allocator.free(allocator.alloc(SIZE))
    allocator.state.conv.fill_(3)
    allocator.state.temporal.fill_(5)
    return allocator


def test_new_slots_are_zero_in_every_buffer_and_no_other_is_touched() -> None:
    allocator = dirty_slots()
    slots = allocator.alloc(3)
    others = torch.ones(SIZE + 1, dtype=torch.bool)
    others[slots] = False
    for rows in (allocator.state.conv, allocator.state.temporal):
        assert not rows[:, slots].any()
        assert rows[:, others].flatten(2).ne(0).all()


def test_slots_that_others_hold_keep_their_state() -> None:
    allocator = dirty_slots()
    held = allocator.alloc(2)
    allocator.state.conv[:, held] = 7
    allocator.retain(held)
    allocator.free(held)
    allocator.alloc(SIZE - 2, held)
    assert allocator.state.conv[:, held].eq(7).all()


def test_no_slot_is_zeroed_where_there_is_no_room() -> None:
    allocator = dirty_slots()
    before = snapshot(allocator)
    assert allocator.alloc(SIZE + 1) is None
    assert snapshot(allocator) == before


def test_clear_leaves_state_rows_alone() -> None:
    allocator = dirty_slots()
    allocator.alloc(3)
    before = snapshot(allocator.state)
    allocator.clear()
    assert snapshot(allocator.state) == before


# -- host ---------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 6, 21])
def test_host_rows_come_in_whole_pages(count: int) -> None:
    allocator = make("host")
    before = snapshot(allocator)
    with pytest.raises(ValueError, match=f"^count {count} is not a multiple of page_size 4$"):
        allocator.alloc(count)
    assert snapshot(allocator) == before


def test_host_page_is_never_continued() -> None:
    allocator = HostAllocator(size=SIZE, page_size=PAGE)
    held = allocator.alloc(PAGE)
    allocator.free(held[2:])
    assert held.tolist() == [0, 1, 2, 3]
    assert allocator.alloc(PAGE, held[:2]).tolist() == [4, 5, 6, 7]
    assert allocator.alloc(PAGE, ids()).tolist() == [8, 9, 10, 11]


# -- virtual ------------------------------------------------------------------------


def test_ids_and_owners_stay_while_rows_move() -> None:
    allocator = make("virtual")
    held = allocator.alloc(3)
    assert allocator.translate(held).tolist() == [23, 22, 21]
    books = snapshot(allocator.free_list)
    allocator.compact()
    assert allocator.translate(held).tolist() == [4, 23, 22]
    assert snapshot(allocator.free_list) == books
    table = allocator.pool.table.clone()
    allocator.clear()
    assert torch.equal(allocator.pool.table, table)


# -- the verbs of the pool ------------------------------------------------------------


class Recorder:
    """Stands for a pool: remembers how its verbs were called."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def get_cpu_copy(self, *args: Any, **words: Any) -> str:
        self.calls.append((args, words))
        return "copy"

    def load_cpu_copy(self, *args: Any, **words: Any) -> None:
        self.calls.append((args, words))


@pytest.mark.parametrize("state", [None, ids(3)], ids=["no state", "state"])
@pytest.mark.parametrize("kind", SERVES_A_POOL)
def test_verbs_reach_the_pool_with_every_keyword(kind: str, state: Any) -> None:
    allocator = make(kind)
    allocator.pool = pool = Recorder()
    rows = ids(4, 5)
    assert allocator.get_cpu_copy(rows, mamba_indices=state) == "copy"
    assert allocator.load_cpu_copy("copy", rows, state) is None
    words = {"mamba_indices": state}
    assert pool.calls == [((rows,), words), (("copy", rows), words)]


@pytest.mark.parametrize("verb", ["get_cpu_copy", "load_cpu_copy"])
@pytest.mark.parametrize("kind", SERVES_A_POOL)
def test_verbs_have_the_parameters_of_the_pools(kind: str, verb: str) -> None:
    parameters = [
        [(p.name, p.kind, p.default) for p in inspect.signature(owner).parameters.values()]
        for owner in (getattr(make(kind), verb), getattr(HybridPool, verb))
    ]
    assert parameters[0] == parameters[1][1:]


@pytest.mark.parametrize("cls", [TokenAllocator, PagedAllocator])
def test_request_and_its_state_survive_retraction(cls: Any) -> None:
    pool = HybridPool(token_pool(), state_pool())
    tokens, slots = cls(pool), StateSlotAllocator(pool.state)
    rows, slot = tokens.alloc(6), slots.alloc(1)
    pool.attention.k[0][rows] = torch.arange(6.0).half()[:, None, None]
    pool.state.temporal[:, slot] = 9
    copy = tokens.get_cpu_copy(rows, mamba_indices=slot)
    tokens.free(rows)
    slots.free(slot)
    other, other_slot = tokens.alloc(2), slots.alloc(1)
    again, new_slot = tokens.alloc(6), slots.alloc(1)
    assert again.tolist() != rows.tolist()
    assert new_slot.tolist() != slot.tolist()
    tokens.load_cpu_copy(copy, again, mamba_indices=new_slot)
    assert pool.attention.k[0][again, 0, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert pool.state.temporal[:, new_slot].eq(9).all()
    assert not set(other.tolist()) & set(again.tolist())
    assert not pool.state.temporal[:, other_slot].any()
