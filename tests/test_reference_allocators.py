"""The reference allocators by example: what every one of them does, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from allocator_cases import (
    KINDS,
    PAGE,
    SIZE,
    ids,
    make,
    snapshot,
    token_pool,
)

from reference_pools.allocators import (
    PagedAllocator,
    TokenAllocator,
)

each_kind = pytest.mark.parametrize("kind", KINDS)


# -- handing out ------------------------------------------------------------------


@each_kind
def test_every_id_is_handed_out_once_and_then_none(kind: str) -> None:
    allocator = make(kind)
    assert allocator.available() == SIZE
    taken = torch.cat([allocator.alloc(count) for count in (8, 4, 8)])
    assert sorted(taken.tolist()) == list(range(allocator.first, allocator.first + SIZE))
    assert allocator.available() == 0
    before = snapshot(allocator)
    assert allocator.alloc(4) is None
    assert snapshot(allocator) == before


@pytest.mark.parametrize(
    ("kind", "first", "page_size"),
    [
        ("token", PAGE, 1),
        ("paged", PAGE, PAGE),
        ("virtual", PAGE, PAGE),
        ("window", PAGE, PAGE),
        ("state", 1, 1),
        ("host", 0, PAGE),
    ],
)
def test_reserved_rows_are_the_pools(kind: str, first: int, page_size: int) -> None:
    allocator = make(kind)
    assert (allocator.first, allocator.page_size, allocator.size) == (first, page_size, SIZE)


@each_kind
def test_ids_are_int64_and_the_callers_own(kind: str) -> None:
    allocator = make(kind)
    taken = allocator.alloc(8)
    assert (taken.dtype, taken.shape, taken.device.type) == (torch.int64, (8,), "cpu")
    assert taken._base is None
    assert taken.untyped_storage().nbytes() == 8 * 8
    before = snapshot(allocator)
    taken.fill_(-1)
    assert snapshot(allocator) == before


@pytest.mark.parametrize("make", [TokenAllocator, PagedAllocator])
def test_ids_are_on_the_device_of_the_pool(make: Any) -> None:
    assert make(token_pool(device="meta")).alloc(5).device.type == "meta"


@each_kind
def test_no_ids_are_an_empty_tensor(kind: str) -> None:
    allocator = make(kind)
    held = allocator.alloc(8)[:6]
    before = snapshot(allocator)
    for taken in (allocator.alloc(0), allocator.alloc(0, held), allocator.alloc(0, ids())):
        assert (taken.dtype, taken.tolist()) == (torch.int64, [])
    assert snapshot(allocator) == before


@each_kind
def test_no_ids_are_left_where_there_is_no_room(kind: str) -> None:
    allocator = make(kind)
    held = allocator.alloc(8)
    allocator.free(held[4:])
    before = snapshot(allocator)
    assert allocator.alloc(SIZE) is None
    assert allocator.alloc(SIZE, held[:4]) is None
    assert snapshot(allocator) == before


@each_kind
def test_negative_count_is_named(kind: str) -> None:
    allocator = make(kind)
    before = snapshot(allocator)
    with pytest.raises(ValueError, match="^count -3 is negative$"):
        allocator.alloc(-3)
    assert snapshot(allocator) == before


@each_kind
def test_what_was_freed_last_is_handed_out_first(kind: str) -> None:
    allocator = make(kind)
    pages = allocator.alloc(SIZE).view(-1, allocator.page_size)
    for page in (3, 0, 2):
        allocator.free(pages[page])
    again = allocator.alloc(2 * allocator.page_size).view(-1, allocator.page_size)
    assert torch.equal(again, pages[[2, 0]])


@each_kind
def test_ids_of_one_free_do_not_come_back_sorted(kind: str) -> None:
    allocator = make(kind)
    taken = allocator.alloc(SIZE)
    allocator.free(taken)
    again = allocator.alloc(SIZE)
    assert sorted(again.tolist()) == sorted(taken.tolist())
    assert again.tolist() != sorted(taken.tolist())


# -- refusals -----------------------------------------------------------------------

UNUSED = "which is not in use: it was freed before, or never handed out"


def illegal(first: int) -> list[tuple[Any, type[Exception], str]]:
    """Ids against an allocator whose first eight ids are in use, but for the second."""
    end = first + SIZE
    used, freed, never = first, first + 1, first + 9
    return [
        (ids(used, freed), ValueError, f"contains {freed}, {UNUSED}"),
        (ids(never), ValueError, f"contains {never}, {UNUSED}"),
        (ids(used, used + 2, used), ValueError, f"contains {used} more than once"),
        (ids(used, end), IndexError, f"contains {end}, but the last row is {end - 1}"),
        (ids(used, -3), IndexError, "contains -3; ids are not negative"),
        ([used], TypeError, "must be a tensor of ids, got list"),
        (ids(used).float(), TypeError, "must be int32 or int64, got torch.float32"),
        (ids(used).bool(), TypeError, "must be int32 or int64, got torch.bool"),
        (ids(used)[None], ValueError, "must have one dimension, got shape (1, 1)"),
    ]


@pytest.mark.parametrize("grouped", [False, True], ids=["alone", "in a group"])
@pytest.mark.parametrize("case", range(len(illegal(0))))
@each_kind
def test_illegal_ids_are_named_and_change_nothing(kind: str, case: int, grouped: bool) -> None:
    allocator = make(kind)
    wrong, error, message = illegal(allocator.first)[case]
    allocator.alloc(8)
    if grouped:
        allocator.begin_free_group()
    allocator.free(ids(allocator.first + 1))
    before = snapshot(allocator)
    calls = {
        "ids": [allocator.free, allocator.retain],
        "held": [lambda held: allocator.alloc(4, held)],
    }
    if kind == "window":
        calls["ids"].append(allocator.release_window)
    for name, verbs in calls.items():
        for verb in verbs:
            with pytest.raises(error) as caught:
                verb(wrong)
            assert str(caught.value) == f"{name} {message}"
            assert snapshot(allocator) == before


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "host"])
def test_reserved_row_is_refused(kind: str) -> None:
    allocator = make(kind)
    before = snapshot(allocator)
    with pytest.raises(IndexError, match=f"contains 0, but rows below {allocator.first} are"):
        allocator.free(ids(0))
    assert snapshot(allocator) == before


@each_kind
def test_second_free_is_refused_when_another_request_has_the_page(kind: str) -> None:
    allocator = make(kind)
    page = allocator.alloc(PAGE)
    allocator.free(page)
    allocator.free(allocator.alloc(PAGE))
    before = snapshot(allocator)
    with pytest.raises(ValueError, match=f"contains {int(page[0])}, {UNUSED}"):
        allocator.free(page)
    assert snapshot(allocator) == before


@each_kind
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_nothing_can_be_freed(kind: str, dtype: torch.dtype) -> None:
    allocator = make(kind)
    before = snapshot(allocator)
    for verb in (allocator.free, allocator.retain):
        verb(torch.empty(0, dtype=dtype))
    assert snapshot(allocator) == before


@each_kind
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_strided_ids_of_either_width_are_freed(kind: str, dtype: torch.dtype) -> None:
    allocator = make(kind)
    taken = allocator.alloc(8).to(dtype)
    table = torch.stack([taken, torch.full_like(taken, -1)], dim=1)
    assert not table[:, 0].is_contiguous()
    allocator.retain(table[:, 0])
    allocator.free(table[:, 0])
    allocator.free(table[:, 0])
    assert allocator.available() == SIZE


# -- owners -------------------------------------------------------------------------


@each_kind
def test_shared_ids_are_free_with_their_last_owner(kind: str) -> None:
    allocator = make(kind)
    taken = allocator.alloc(2 * PAGE)
    allocator.retain(taken[:PAGE])
    allocator.retain(taken[:PAGE])
    allocator.free(taken)
    assert allocator.available() == SIZE - PAGE
    allocator.free(taken[:PAGE])
    rest = allocator.alloc(SIZE - PAGE)
    assert not set(rest.tolist()) & set(taken[:PAGE].tolist())
    allocator.free(taken[:PAGE])
    assert allocator.available() == PAGE
    with pytest.raises(ValueError, match="which is not in use"):
        allocator.free(taken[:PAGE])


# -- free groups --------------------------------------------------------------------


@each_kind
def test_group_frees_at_its_end(kind: str) -> None:
    allocator = make(kind)
    taken = allocator.alloc(SIZE)
    allocator.begin_free_group()
    part = taken[:8].clone()
    allocator.free(part)
    part.fill_(int(taken[-1]))
    allocator.free(taken[8:12])
    assert allocator.available() == 0
    assert allocator.alloc(4) is None
    with pytest.raises(ValueError, match=f"contains {int(taken[5])}, {UNUSED}"):
        allocator.free(taken[4:6].flip(0))
    allocator.end_free_group()
    assert allocator.available() == 12
    assert set(allocator.alloc(12).tolist()) == set(taken[:12].tolist())
    allocator.free(taken[12:])
    assert allocator.available() == 8


@each_kind
def test_shared_ids_in_a_group_come_back_only_with_their_last_owner(kind: str) -> None:
    allocator = make(kind)
    taken = allocator.alloc(SIZE)
    allocator.retain(taken)
    allocator.begin_free_group()
    allocator.free(taken)
    allocator.free(taken[:PAGE])
    allocator.end_free_group()
    assert allocator.available() == PAGE


@each_kind
def test_groups_do_not_nest_and_end_once(kind: str) -> None:
    allocator = make(kind)
    before = snapshot(allocator)
    with pytest.raises(RuntimeError, match="^no free group is open$"):
        allocator.end_free_group()
    assert snapshot(allocator) == before
    allocator.begin_free_group()
    before = snapshot(allocator)
    with pytest.raises(RuntimeError, match="^a free group is open already; groups do not nest$"):
        allocator.begin_free_group()
    assert snapshot(allocator) == before
    allocator.end_free_group()
    allocator.begin_free_group()


@each_kind
def test_clear_forgets_everything(kind: str) -> None:
    allocator = make(kind)
    new = snapshot(allocator)
    taken = allocator.alloc(12)
    allocator.retain(taken[:4])
    allocator.free(taken[8:])
    allocator.begin_free_group()
    allocator.free(taken[4:8])
    allocator.clear()
    assert snapshot(allocator) == new
