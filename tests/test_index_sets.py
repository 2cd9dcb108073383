"""Index sets: legal, of every shape, and simple once shrunk."""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from conformance import Pool, scenarios
from conformance.geometry import Geometry, geometries
from conformance.index_sets import CHUNK as CHUNK_BYTES
from conformance.index_sets import (
    FORMS,
    SHAPES,
    Draw,
    Space,
    arrange,
    draw_form,
    draw_rows,
    draw_rows_like,
    draw_state,
    lengths,
)
from conformance.programs import PLAIN, Form, Offload, Reload, Rows, Write

TOKEN = Pool("token", object, kind="token", page_sizes=[4], pages=[9], chunk_tokens=[5])
PAGED = Pool("dsa", object, kind="dsa", page_sizes=[4], pages=[9], chunk_tokens=[5])
HYBRID = Pool("hybrid", object, kind="hybrid")
TOKENS = Space(geometries(TOKEN)[0], paged=False)
PAGES = Space(geometries(PAGED)[0], paged=True)
SEARCH = settings(derandomize=True, database=None, deadline=None, max_examples=2000)
DRAWN = settings(SEARCH, max_examples=150)

RowsAndStart = tuple[Rows, int]


@st.composite
def index_sets(draw: Any, space: Space, shape: Any = None) -> RowsAndStart:
    return draw_rows(Draw.of(draw), space, shape=shape)


@st.composite
def forms(draw: Any, has_state: bool) -> Form:
    return draw_form(Draw.of(draw), has_state=has_state)


@st.composite
def states(draw: Any, geometry: Geometry) -> int:
    return draw_state(Draw.of(draw), geometry)


def shrunk(strategy: Any, condition: Callable[[Any], bool]) -> Any:
    return find(strategy, condition, settings=SEARCH)


@cache
def sample(space: Space) -> tuple[RowsAndStart, ...]:
    """A thousand index sets as they are drawn: always the same ones."""
    found: list[RowsAndStart] = []

    @settings(SEARCH, max_examples=1000, phases=[Phase.generate])
    @given(index_sets(space))
    def collect(drawn: RowsAndStart) -> None:
        found.append(drawn)

    collect()
    return tuple(found)


def gaps(rows: Rows) -> list[int]:
    return [after - before for before, after in itertools.pairwise(rows)]


# -- legal ------------------------------------------------------------------------


@pytest.mark.parametrize("space", [TOKENS, PAGES], ids=["tokens", "pages"])
@pytest.mark.parametrize("shape", [None, *SHAPES])
def test_rows_are_legal_and_unique(space: Space, shape: Any) -> None:
    legal = range(space.geometry.page_size, space.geometry.token_rows)

    @DRAWN
    @given(index_sets(space, shape))
    def check(found: RowsAndStart) -> None:
        rows, start = found
        assert rows
        assert all(row in legal for row in rows)
        assert len(set(rows)) == len(rows)
        assert 0 <= start < space.block

    check()


@DRAWN
@given(index_sets(PAGES))
def test_paged_rows_run_through_pages_slot_after_slot(found: RowsAndStart) -> None:
    rows, start = found
    size = PAGES.geometry.page_size
    assert [row % size for row in rows] == [(start + i) % size for i in range(len(rows))]
    pages = [row // size for row in rows]
    changes = [i for i in range(1, len(rows)) if pages[i] != pages[i - 1]]
    assert changes == [i for i in range(1, len(rows)) if rows[i] % size == 0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("space", [TOKENS, PAGES], ids=["tokens", "pages"])
def test_every_arrangement_is_of_different_blocks(space: Space, shape: Any) -> None:
    for count in range(1, space.blocks + 1):
        for seed in range(4 * space.blocks):
            blocks = arrange(shape, space.blocks, count, seed)
            assert len(set(blocks)) == len(blocks) == count
            assert set(blocks) <= set(range(space.blocks))


@DRAWN
@given(states(geometries(HYBRID)[0]))
def test_state_ids_are_legal(state: int) -> None:
    assert 1 <= state <= geometries(HYBRID)[0].state_size


@DRAWN
@given(st.data(), st.integers(1, 30))
def test_rows_like_have_the_length_and_start_asked_for(data: st.DataObject, length: int) -> None:
    rows = draw_rows_like(Draw.of(data.draw), PAGES, length, 3)
    assert (len(rows), rows[0] % 4) == (length, 3)


# -- every situation is reached ---------------------------------------------------

PAGE, CHUNK, SIZE = 4, 5, TOKENS.geometry.size

TOKEN_SITUATIONS: dict[str, Callable[[Rows], bool]] = {
    "one token": lambda rows: len(rows) == 1,
    "first row": lambda rows: PAGE in rows,
    "last row": lambda rows: TOKENS.geometry.token_rows - 1 in rows,
    "all tokens": lambda rows: len(rows) == SIZE,
    "all tokens in no order": lambda rows: len(rows) == SIZE and len({*gaps(rows)}) > 1,
    "contiguous": lambda rows: len(rows) > 3 and {*gaps(rows)} == {1},
    "reversed": lambda rows: len(rows) > 3 and {*gaps(rows)} == {-1},
    "strided": lambda rows: len(rows) > 3 and {*gaps(rows)} == {3},
    "shuffled": lambda rows: len(rows) > 3 and len({gap > 0 for gap in gaps(rows)}) == 2,
    "page-aligned": lambda rows: (
        rows[0] % PAGE == 0 and len(rows) == 2 * PAGE and {*gaps(rows)} == {1}
    ),
    "partial last page": lambda rows: rows[0] % PAGE == 0 and len(rows) % PAGE != 0,
    "mid-page begin": lambda rows: rows[0] % PAGE != 0,
} | {
    f"{k} times {name}{off:+d}": lambda rows, n=k * step + off: len(rows) == n
    for name, step in (("page", PAGE), ("chunk", CHUNK))
    for k in (1, 2, 3)
    for off in (-1, 0, 1)
}

PAGE_SITUATIONS: dict[str, Callable[[RowsAndStart], bool]] = {
    "one token": lambda found: len(found[0]) == 1,
    "all tokens": lambda found: len(found[0]) == SIZE,
    "begin on a page": lambda found: found[1] == 0,
    **{f"begin at slot {k}": lambda found, k=k: found[1] == k for k in range(1, PAGE)},
    "within one page": lambda found: 0 < found[1] < PAGE - len(found[0]),
    "whole last page": lambda found: found[0][-1] % PAGE == PAGE - 1,
    "partial last page": lambda found: found[0][-1] % PAGE != PAGE - 1,
    "pages backwards": lambda found: found[0][0] > found[0][-1],
    "pages with gaps": lambda found: max(gaps(found[0]), default=0) > PAGE,
    "mid-page, many pages": lambda found: found[1] > 0 and len(found[0]) > 2 * PAGE,
}


@pytest.mark.parametrize("situation", TOKEN_SITUATIONS)
def test_situation_of_tokens_is_reached(situation: str) -> None:
    assert any(TOKEN_SITUATIONS[situation](rows) for rows, _ in sample(TOKENS))


@pytest.mark.parametrize("situation", PAGE_SITUATIONS)
def test_situation_of_pages_is_reached(situation: str) -> None:
    assert any(map(PAGE_SITUATIONS[situation], sample(PAGES)))


def test_lengths_are_about_multiples_of_page_and_chunk() -> None:
    tried = lengths(TOKENS.geometry, SIZE)
    near = {k * step + off for step in (PAGE, CHUNK) for k in range(1, 8) for off in (-1, 0, 1)}
    assert {1, 3, SIZE} | {n for n in near if n <= 35} <= set(tried)
    assert tried == tuple(sorted(set(tried)))


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_lengths_never_exceed_what_there_is(most: int) -> None:
    assert max(lengths(TOKENS.geometry, most)) == most


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form).strip() or "plain")
def test_form_is_reached(form: Form) -> None:
    assert shrunk(forms(has_state=False), lambda found: found == form) == form


@pytest.mark.parametrize("attribute", ["on_host", "strided", "scalar_state"])
def test_form_of_a_pool_with_state_is_reached(attribute: str) -> None:
    assert getattr(shrunk(forms(has_state=True), lambda f: getattr(f, attribute)), attribute)


def test_pool_without_state_gets_no_scalar_state() -> None:
    @DRAWN
    @given(forms(has_state=False))
    def check(form: Form) -> None:
        assert not form.scalar_state

    check()


@pytest.mark.parametrize("state", [1, 11])
def test_state_is_reached(state: int) -> None:
    assert shrunk(states(geometries(HYBRID)[0]), lambda found: found == state) == state


# -- shrinking ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (lambda rows: True, {(4,)}),
        (lambda rows: max(rows) > 9, {(10,), (8, 9, 10)}),
        (lambda rows: len(rows) > 1, {(4, 5, 6)}),
        (lambda rows: len(rows) >= 8, {tuple(range(4, 12))}),
        (lambda rows: len(rows) > 1 and max(rows) > 9, {(8, 9, 10)}),
    ],
)
def test_rows_shrink_to_a_short_sorted_list(condition: Any, rows: set[Rows]) -> None:
    found, start = shrunk(index_sets(TOKENS), lambda found: condition(found[0]))
    assert found in rows
    assert start == 0


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (lambda rows, start: True, ((4,), 0)),
        (lambda rows, start: start > 1, ((6,), 2)),
        (lambda rows, start: len(rows) > 4, (tuple(range(4, 9)), 0)),
    ],
)
def test_paged_rows_shrink_to_a_short_run(condition: Any, found: RowsAndStart) -> None:
    assert shrunk(index_sets(PAGES), lambda drawn: condition(*drawn)) == found


def test_form_shrinks_to_the_plain_one() -> None:
    assert shrunk(forms(has_state=True), lambda _: True) == PLAIN


def test_program_shrinks_to_one_round_trip_of_one_token() -> None:
    strategy = scenarios.programs(TOKEN, "cpu", scenarios.other_rows)
    geometry, program = shrunk(strategy, lambda _: True)
    assert geometry == geometries(TOKEN)[0]
    assert str(program) == "write r0 at 4; offload r0 as c0; overwrite; reload c0 at 4"


def test_program_of_a_failure_beyond_a_row_shrinks_to_one_short_round_trip() -> None:
    strategy = scenarios.programs(TOKEN, "cpu", scenarios.anything)
    _, program = shrunk(
        strategy, lambda found: any(isinstance(s, Reload) and max(s.rows) > 9 for s in found[1])
    )
    write, _, _, reload = program
    assert len(write.rows) <= 3
    assert write.rows == tuple(range(4, 4 + len(write.rows)))
    assert reload.rows == tuple(range(11 - len(write.rows), 11))


def test_split_parts_make_the_whole() -> None:
    @DRAWN
    @given(scenarios.programs(PAGED, "cpu", scenarios.split))
    def check(found: Any) -> None:
        written = {s.request: s.rows for s in found[1] if isinstance(s, Write)}
        parts = [s for s in found[1] if isinstance(s, Offload)]
        for head, tail in zip(parts[::2], parts[1::2], strict=True):
            assert (head.start, tail.stop) == (0, len(written[head.request]))
            assert 0 < head.stop == tail.start < tail.stop

    check()


# -- numbers out of bytes ---------------------------------------------------------------


def fixed(*chunks: bytes) -> Draw:
    """Draws from these chunks, and fails when they are used up."""
    left = iter(chunks)
    return Draw(lambda: next(left))


@pytest.mark.parametrize("count", [2, 3, 100, 255, 256, 257, 1000, 65536])
def test_every_number_below_the_count_can_be_drawn(count: int) -> None:
    width = (count - 1).bit_length() + 7 >> 3
    seen = {fixed(n.to_bytes(width, "big"))(count) for n in range(256**width)}
    assert seen == set(range(count))


def test_zero_bytes_draw_zero() -> None:
    draw = fixed(bytes(CHUNK_BYTES))
    assert [draw(count) for count in (2, 300, 7)] == [0, 0, 0]


def test_what_leaves_no_choice_draws_nothing() -> None:
    draw = fixed()
    assert draw(1) == draw(0) == 0


def test_chunk_is_used_up_before_the_next_is_drawn() -> None:
    draw = fixed(bytes(range(CHUNK_BYTES)), b"\x63" * CHUNK_BYTES)
    assert [draw(256) for _ in range(CHUNK_BYTES)] == list(range(CHUNK_BYTES))
    assert draw(256) == 0x63


def test_number_that_the_chunk_is_too_short_for_begins_the_next() -> None:
    draw = fixed(b"\x01" * CHUNK_BYTES, b"\x02" * CHUNK_BYTES)
    for _ in range(CHUNK_BYTES - 1):
        draw(256)
    assert draw(65536) == 0x0202


def test_what_is_drawn_apart_begins_a_chunk() -> None:
    draw = fixed(b"\x01" * CHUNK_BYTES, b"\x02" * CHUNK_BYTES)
    assert draw(256) == 1
    draw.apart()
    assert draw(256) == 2


def test_drawn_numbers_are_about_as_likely() -> None:
    source = random.Random(0)
    draw = Draw(lambda: source.randbytes(CHUNK_BYTES))
    seen = collections.Counter(draw(10) for _ in range(10_000))
    assert min(seen.values()) > 850
    assert max(seen.values()) < 1150
