"""The sliding-window allocator: two spaces of ids in step, and the mapping between them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from allocator_cases import PAGE, SIZE, ids, snapshot, token_pool, window_allocator
from torch import Tensor

from reference_pools import SlidingWindowPool
from reference_pools.allocators import SlidingWindowAllocator

PAGE_SIZES = pytest.mark.parametrize("page_size", [1, PAGE])


def rows_of(allocator: Any, tokens: Tensor) -> list[int]:
    """The window rows of `tokens`, 0 for none."""
    rows: list[int] = allocator.pool.mapping[tokens].tolist()
    return rows


def available(allocator: Any) -> tuple[int, int]:
    return allocator.available_full(), allocator.available_window()


def apart() -> tuple[Any, Tensor]:
    """An allocator whose window rows differ from its full ids, and eight tokens of it."""
    allocator = window_allocator()
    other = allocator.alloc(PAGE)
    allocator.release_window(other)
    tokens = allocator.alloc(2 * PAGE)
    assert rows_of(allocator, tokens) == [4, 5, 6, 7, 8, 9, 10, 11]
    assert tokens.tolist() == [8, 9, 10, 11, 12, 13, 14, 15]
    return allocator, tokens


@PAGE_SIZES
def test_every_new_id_has_a_window_row_at_the_same_slot(page_size: int) -> None:
    allocator = window_allocator(page_size=page_size)
    allocator.release_window(allocator.alloc(page_size))
    taken = allocator.alloc(7)
    more = allocator.alloc(6, taken)
    tokens = torch.cat([taken, more])
    rows = allocator.pool.mapping[tokens]
    assert len(set(rows.tolist())) == 13
    assert bool((rows >= page_size).all())
    assert bool((rows != tokens).all())
    assert torch.equal(rows % page_size, tokens % page_size)
    pages = set(zip((tokens // page_size).tolist(), (rows // page_size).tolist(), strict=True))
    assert len(pages) == -(-13 // page_size)
    assert int((allocator.pool.mapping > 0).sum()) == 13


@pytest.mark.parametrize(("full", "window"), [(8, SIZE), (SIZE, 8)], ids=["full", "window"])
@PAGE_SIZES
def test_either_space_alone_can_be_exhausted(full: int, window: int, page_size: int) -> None:
    allocator = window_allocator(full, window, page_size)
    assert available(allocator) == (full, window)
    assert allocator.available() == 8
    held = allocator.alloc(6)
    before = snapshot(allocator)
    assert allocator.alloc(9) is None
    assert allocator.alloc(3, held) is None
    assert snapshot(allocator) == before
    assert len(allocator.alloc(2, held)) == 2
    assert allocator.available() == 0
    assert allocator.alloc(1) is None


def test_pages_of_different_sizes_are_refused() -> None:
    message = "^full pages of 4 rows cannot advance in step with window pages of 5$"
    with pytest.raises(ValueError, match=message):
        SlidingWindowAllocator(SlidingWindowPool(token_pool(20, 4), token_pool(20, 5)))


# -- sliding ------------------------------------------------------------------------


def test_released_tokens_stay_in_use_without_a_window_row() -> None:
    allocator, tokens = apart()
    assert available(allocator) == (8, 12)
    allocator.release_window(tokens[:5].int())
    assert rows_of(allocator, tokens) == [0, 0, 0, 0, 0, 9, 10, 11]
    assert available(allocator) == (8, 16)
    allocator.free(tokens)
    assert available(allocator) == (16, 20)
    assert not allocator.pool.mapping.any()


def test_tokens_of_one_page_are_released_one_by_one() -> None:
    allocator, tokens = apart()
    for position in (2, 0, 3, 1):
        assert available(allocator) == (8, 12)
        token = tokens[position : position + 1]
        allocator.release_window(token)
        allocator.release_window(token)
        assert rows_of(allocator, token) == [0]
    assert available(allocator) == (8, 16)
    assert rows_of(allocator, tokens[PAGE:]) == [8, 9, 10, 11]
    assert allocator.window.free_list.free_pages.count(1) == 1


def test_released_page_serves_another_request() -> None:
    allocator, tokens = apart()
    allocator.release_window(tokens[:PAGE])
    other = allocator.alloc(PAGE)
    assert rows_of(allocator, other) == [4, 5, 6, 7]
    allocator.release_window(tokens[:PAGE])
    allocator.free(tokens)
    assert rows_of(allocator, other) == [4, 5, 6, 7]
    assert available(allocator) == (12, 16)


@pytest.mark.parametrize("tokens", [ids(4, 11), ids(23)], ids=["freed", "never handed out"])
def test_tokens_that_nobody_has_are_not_released(tokens: Tensor) -> None:
    allocator, taken = apart()
    allocator.free(taken[3:])
    before = snapshot(allocator)
    with pytest.raises(ValueError, match=f"^ids contains {int(tokens[-1])}, which is not in use"):
        allocator.release_window(tokens)
    assert snapshot(allocator) == before


def test_nothing_can_be_released() -> None:
    allocator, _ = apart()
    before = snapshot(allocator)
    allocator.release_window(ids())
    assert snapshot(allocator) == before


@pytest.mark.parametrize(
    ("released", "rows"),
    [
        ([], [10, 11, 16, 17]),
        ([4], [10, 11, 16, 17]),
        ([5], [10, 11, 16, 17]),
        ([0, 1, 2, 3], [10, 11, 4, 5]),
    ],
    ids=str,
)
def test_request_goes_on_in_the_window_page_that_it_has(released: Any, rows: Any) -> None:
    allocator = window_allocator()
    allocator.release_window(allocator.alloc(PAGE))
    held = allocator.alloc(6)
    other = allocator.alloc(PAGE)
    allocator.release_window(held[released])
    more = allocator.alloc(4, held)
    assert more.tolist() == [14, 15, 20, 21]
    assert rows_of(allocator, more) == rows
    assert rows_of(allocator, other) == [12, 13, 14, 15]


def test_page_that_the_window_has_left_goes_on_in_a_fresh_window_page() -> None:
    allocator = window_allocator(window=12)
    held = allocator.alloc(6)
    allocator.release_window(held)
    other = allocator.alloc(PAGE)
    assert rows_of(allocator, other) == [8, 9, 10, 11]
    more = allocator.alloc(3, held)
    assert more.tolist() == [10, 11, 16]
    assert rows_of(allocator, more) == [6, 7, 12]
    assert allocator.available_window() == 0
    allocator.free(torch.cat([held, more]))
    assert available(allocator) == (16, 8)


def test_fresh_window_page_may_be_missing() -> None:
    allocator = window_allocator(window=8)
    held = allocator.alloc(2)
    allocator.release_window(held)
    allocator.alloc(2 * PAGE)
    before = snapshot(allocator)
    assert allocator.alloc(1, held) is None
    assert len(allocator.alloc(0, held)) == 0
    assert snapshot(allocator) == before


# -- owners -------------------------------------------------------------------------


def test_shared_window_row_goes_with_its_last_owner() -> None:
    allocator, tokens = apart()
    allocator.retain(tokens[:PAGE])
    allocator.free(tokens)
    assert rows_of(allocator, tokens) == [4, 5, 6, 7, 0, 0, 0, 0]
    assert available(allocator) == (12, 16)
    allocator.free(tokens[:PAGE])
    assert rows_of(allocator, tokens) == [0] * 8
    assert available(allocator) == (16, 20)


def test_shared_window_row_goes_when_every_owner_has_released_it() -> None:
    allocator, tokens = apart()
    allocator.retain(tokens[:PAGE])
    allocator.release_window(tokens)
    assert rows_of(allocator, tokens) == [4, 5, 6, 7, 0, 0, 0, 0]
    allocator.release_window(tokens[:PAGE])
    assert rows_of(allocator, tokens) == [0] * 8
    assert available(allocator) == (8, 20)
    allocator.free(tokens)
    allocator.free(tokens[:PAGE])
    assert available(allocator) == (16, 20)


def test_owner_that_released_and_frees_leaves_the_row_to_the_other() -> None:
    allocator, tokens = apart()
    allocator.retain(tokens)
    allocator.release_window(tokens)
    allocator.free(tokens)
    assert rows_of(allocator, tokens) == [4, 5, 6, 7, 8, 9, 10, 11]
    allocator.release_window(tokens)
    assert rows_of(allocator, tokens) == [0] * 8
    allocator.free(tokens)
    assert available(allocator) == (16, 20)


def test_new_owner_of_a_released_token_has_no_row_of_it() -> None:
    allocator, tokens = apart()
    allocator.release_window(tokens[:PAGE])
    allocator.retain(tokens)
    allocator.free(tokens)
    assert rows_of(allocator, tokens) == [0, 0, 0, 0, 8, 9, 10, 11]
    allocator.free(tokens)
    assert available(allocator) == (16, 20)


# -- free groups --------------------------------------------------------------------


def test_group_unmaps_at_the_call_and_frees_at_the_end() -> None:
    allocator, tokens = apart()
    allocator.begin_free_group()
    allocator.release_window(tokens[:PAGE])
    allocator.free(tokens[PAGE:])
    assert rows_of(allocator, tokens) == [0] * 8
    assert available(allocator) == (8, 12)
    allocator.free(tokens[:PAGE])
    assert available(allocator) == (8, 12)
    before = snapshot(allocator)
    with pytest.raises(ValueError, match="^ids contains 8, which is not in use"):
        allocator.free(tokens[:PAGE])
    assert snapshot(allocator) == before
    allocator.end_free_group()
    assert available(allocator) == (16, 20)


def test_token_can_be_mapped_anew_inside_a_group() -> None:
    allocator = window_allocator()
    held = allocator.alloc(6)
    allocator.begin_free_group()
    allocator.release_window(held)
    more = allocator.alloc(1, held)
    assert rows_of(allocator, more) == [14]
    allocator.end_free_group()
    assert rows_of(allocator, more) == [14]
    assert available(allocator) == (12, 16)


def test_clear_unmaps_everything() -> None:
    allocator, tokens = apart()
    allocator.begin_free_group()
    allocator.free(tokens[:PAGE])
    allocator.clear()
    assert not allocator.pool.mapping.any()
    assert available(allocator) == (SIZE, SIZE)
    assert len(allocator.alloc(SIZE)) == SIZE


# -- the pool behind it ----------------------------------------------------------------


def test_request_survives_retraction_in_both_spaces() -> None:
    allocator, tokens = apart()
    pool = allocator.pool
    pool.full.k[0][tokens] = torch.arange(8.0).half()[:, None, None]
    pool.window.k[0][pool.mapping[tokens]] = torch.arange(8.0).half()[:, None, None] + 20
    allocator.release_window(tokens[:PAGE])
    copy = allocator.get_cpu_copy(tokens)
    allocator.free(tokens)
    allocator.alloc(PAGE)
    again = allocator.alloc(2 * PAGE)
    assert again.tolist() != tokens.tolist()
    allocator.load_cpu_copy(copy, again)
    assert pool.full.k[0][again, 0, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert pool.window.k[0][pool.mapping[again[PAGE:]], 0, 0].tolist() == [24, 25, 26, 27]
