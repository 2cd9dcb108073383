"""The oracle of an allocator: who owns which id, what must be free, and what is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from conformance.contract import CLAUSES
from conformance.ledger import Ledger

PAGE, SIZE, WINDOW = 4, 20, 12
Told = list[tuple[str, str]]


def paged(**requests: Sequence[int]) -> Ledger:
    """Five pages of four ids, 4 .. 23, of which these requests have these."""
    return holding(Ledger(PAGE, PAGE + SIZE, PAGE, {"token": SIZE}), requests)


def window(**requests: Sequence[int]) -> Ledger:
    """Likewise, and a window of three pages."""
    totals = {"token": SIZE, "window": WINDOW}
    return holding(Ledger(PAGE, PAGE + SIZE, PAGE, totals), requests)


def single(**requests: Sequence[int]) -> Ledger:
    """Ids 1 .. 5, each its own page."""
    return holding(Ledger(1, 6, 1, {"token": 5}), requests)


def holding(ledger: Ledger, requests: Any) -> Ledger:
    for request, ids in requests.items():
        ledger.hand_out(request, ids)
    return ledger


def begin_group(ledger: Ledger) -> Ledger:
    ledger.pending = ledger.no_ids()
    return ledger


def told(ledger: Ledger, mapping: dict[int, int] | None = None, **available: int) -> Told:
    """What does not add up where so many ids are free, with these window rows of ids."""
    table = None
    if mapping is not None:
        table = torch.zeros(PAGE + SIZE, dtype=torch.int64)
        for i, row in mapping.items():
            table[i] = row
    found = list(ledger.problems(available, table, "ids_are_conserved"))
    assert {clause for clause, _ in found} <= CLAUSES.keys()
    return found


def pages(*numbers: int) -> list[int]:
    """The ids of these pages."""
    return [number * PAGE + slot for number in numbers for slot in range(PAGE)]


# -- what fits ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ledger", "request_", "most"),
    [
        (paged(), "r0", 20),
        (paged(r0=range(4, 8)), "r0", 16),
        (paged(r0=range(4, 9)), "r0", 3 + 12),
        (paged(r0=range(4, 9)), "r1", 12),
        (paged(r0=range(4, 24)), "r0", 0),
        (paged(r0=range(4, 23)), "r0", 1),
        (paged(r0=range(4, 23)), "r1", 0),
        (single(), "r0", 5),
        (single(r0=[1, 4]), "r1", 3),
        (window(), "r0", 12),
        (window(r0=range(4, 9)), "r0", 3 + 4),
    ],
)
def test_what_fits_is_counted_in_whole_pages(ledger: Ledger, request_: str, most: int) -> None:
    assert ledger.fits(request_, most)
    assert not ledger.fits(request_, most + 1)


def test_nothing_fits_into_no_room_but_nothing() -> None:
    ledger = paged(r0=range(4, 24))
    assert ledger.room() == 0
    assert ledger.fits("r1", 0)


def test_room_is_that_of_the_space_with_less() -> None:
    ledger = window(r0=range(4, 8))
    assert ledger.room() == 8
    ledger.left.update(range(4, 8))
    assert ledger.room() == 12
    assert Ledger(4, 24, 4, {"token": 20, "window": 40}).room() == 20


# -- what is handed out -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ledger", "request_", "ids"),
    [
        (paged(), "r0", []),
        (paged(), "r0", [8]),
        (paged(), "r0", [8, 9, 10, 11, 4, 5]),
        (paged(), "r0", [20, 21, 22, 23]),
        (paged(r0=[8]), "r0", [9, 10, 11, 4]),
        (paged(r0=pages(2)), "r0", [4]),
        (paged(r0=pages(2), r1=[4]), "r1", [5]),
        (single(), "r0", [5, 1, 3]),
        (single(r0=[5]), "r0", [4]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_legal_ids_are_not_refused(
    ledger: Ledger, request_: str, ids: list[int], dtype: torch.dtype
) -> None:
    assert list(ledger.refusals(request_, torch.tensor(ids, dtype=dtype), len(ids))) == []


@pytest.mark.parametrize(
    ("ids", "clause", "what"),
    [
        ([4.0, 5.0], "ids_name_rows", "ids are torch.float32 of shape (2,)"),
        ([[4], [5]], "ids_name_rows", "ids are torch.int64 of shape (2, 1)"),
        ([4], "ids_name_rows", "1 ids were handed out, 2 were asked for"),
        ([4, 5, 6], "ids_name_rows", "3 ids were handed out, 2 were asked for"),
        ([0, 1], "ids_name_rows", "id 0 was handed out: it is reserved"),
        ([3, 4], "ids_name_rows", "id 3 was handed out: it is reserved"),
        ([-4, -3], "ids_name_rows", "id -4 was handed out: it is not in 4..23"),
        ([24, 25], "ids_name_rows", "id 24 was handed out: it is not in 4..23"),
        (
            [12, 13],
            "ids_are_handed_out_once",
            "id 12 was handed out to r0, but r1 owns it",
        ),
        (
            [8, 8],
            "ids_are_handed_out_once",
            "id 8 was handed out twice in one call",
        ),
        ([9, 10], "pages_run_slot_after_slot", "id 9 enters a page of 4 rows for r0"),
        (
            [8, 10],
            "pages_run_slot_after_slot",
            "id 10 follows 8 in a page of 4 rows for r0",
        ),
        (
            [8, 16],
            "pages_run_slot_after_slot",
            "id 16 follows 8 in a page of 4 rows for r0",
        ),
    ],
)
def test_illegal_ids_are_told(ids: list[Any], clause: str, what: str) -> None:
    ledger = paged(r1=range(12, 15))
    assert next(ledger.refusals("r0", torch.tensor(ids), 2)) == (clause, what)


@pytest.mark.parametrize("ids", [[6], [12]])
def test_request_must_go_on_in_its_last_page(ids: list[int]) -> None:
    ledger = paged(r0=range(8, 10))
    told = [("pages_run_slot_after_slot", f"id {ids[0]} follows 9 in a page of 4 rows for r0")]
    assert list(ledger.refusals("r0", torch.tensor(ids), 1)) == told


# -- conservation -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ledger", "free"),
    [
        (paged(), 20),
        (paged(r0=[4]), 16),
        (paged(r0=pages(1), r1=[8]), 12),
        (paged(r0=pages(1, 2, 3, 4, 5)), 0),
        (single(r0=[2, 4]), 3),
    ],
)
def test_what_is_free_and_what_is_owned_add_up(ledger: Ledger, free: int) -> None:
    assert told(ledger, token=free) == []
    total = ledger.totals["token"]
    for other in (free - ledger.page_size, free + ledger.page_size, free + 1):
        what = f"{other} are free, expected {free}: {total - free} of {total} are owned"
        assert told(ledger, token=other) == [("ids_are_conserved", what)]


def test_the_step_says_which_clause_is_broken() -> None:
    found = list(paged().problems({"token": 16}, None, "clear_resets_everything"))
    assert [clause for clause, _ in found] == ["clear_resets_everything"]


def test_each_id_space_is_told_by_name() -> None:
    ledger = window(r0=pages(1))
    mapped = dict(zip(pages(1), pages(2), strict=True))
    assert told(ledger, mapped, token=16, window=8) == []
    assert told(ledger, mapped, token=12, window=8) == [
        ("ids_are_conserved", "12 of token ids are free, expected 16: 4 of 20 are owned")
    ]
    lost = ("ids_are_conserved", "4 of window ids are free, expected 8: 4 of 12 are owned")
    assert told(ledger, mapped, token=16, window=4)[0] == lost


def test_freed_tokens_leave_their_page_in_use_until_the_last_goes() -> None:
    ledger = paged(r0=pages(1, 2))
    ledger.free(["r0"], 4)
    assert (ledger.requests, ledger.gone) == ({"r0": pages(1)}, {"r0": pages(2)})
    assert told(ledger, token=16) == []
    ledger.free(["r0"], 1)
    assert told(ledger, token=16) == []
    ledger.free(["r0"], 0)
    assert (ledger.requests, ledger.gone) == ({}, {"r0": [4]})
    assert told(ledger, token=20) == []


def test_several_requests_are_freed_at_once() -> None:
    ledger = paged(r0=pages(1), r1=[8], r2=[12])
    ledger.free(["r0", "r2"], 0)
    assert ledger.requests == {"r1": [8]}
    assert told(ledger, token=16) == []


def test_clear_takes_everything_back() -> None:
    ledger = begin_group(window(r0=pages(1), r1=pages(2)))
    ledger.left.update(pages(1))
    ledger.free(["r1"], 0)
    ledger.clear()
    assert (ledger.requests, ledger.owners, ledger.left) == ({}, {}, set())
    assert ledger.pending is None
    assert ledger.gone == {"r0": pages(1), "r1": pages(2)}
    assert told(ledger, {}, token=20, window=12) == []


# -- sharing ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [("r0", "r1"), ("r1", "r0")])
def test_shared_ids_are_free_when_their_last_owner_goes(order: tuple[str, str]) -> None:
    ledger = paged(r0=pages(1, 2))
    assert ledger.share("r0", "r1", PAGE) == pages(1)
    assert told(ledger, token=12) == []
    ledger.hand_out("r1", pages(3))
    assert told(ledger, token=8) == []
    ledger.free([order[0]], 0)
    assert told(ledger, token=12) == []
    ledger.free([order[1]], 0)
    assert told(ledger, token=20) == []
    assert ledger.owners == {}


def test_shared_ids_are_not_those_of_their_next_owner() -> None:
    ledger = paged(r0=pages(1))
    ledger.share("r0", "r1", PAGE)
    assert ledger.shared == set(pages(1))
    ledger.free(["r0", "r1"], 0)
    ledger.hand_out("r2", pages(1))
    assert ledger.shared == set()


def test_id_with_an_owner_left_is_not_handed_out() -> None:
    ledger = paged(r0=pages(1))
    ledger.share("r0", "r1", PAGE)
    ledger.free(["r0"], 0)
    clause, what = next(ledger.refusals("r2", torch.tensor(pages(1)), PAGE))
    assert (clause, what) == (
        "ids_are_handed_out_once",
        "id 4 was handed out to r2, but r1 owns it",
    )


# -- free groups --------------------------------------------------------------------------


def test_what_a_group_freed_may_be_free_before_its_end() -> None:
    ledger = begin_group(paged(r0=pages(1, 2), r1=[12]))
    ledger.free(["r0"], 0)
    for free in (8, 12, 16):
        assert told(ledger, token=free) == []
    told_ = [("ids_are_conserved", "4 are free, expected 8 to 16: 4 of 20 are owned")]
    assert told(ledger, token=4) == told_
    assert told(ledger, token=20) != []
    ledger.pending = None
    assert told(ledger, token=16) == []
    assert told(ledger, token=8) != []


def test_shared_ids_are_freed_once_in_a_group() -> None:
    ledger = paged(r0=pages(1))
    ledger.share("r0", "r1", PAGE)
    begin_group(ledger)
    ledger.free(["r0"], 0)
    assert told(ledger, token=16) == []
    assert told(ledger, token=20) != []
    ledger.free(["r1"], 0)
    assert told(ledger, token=16) == told(ledger, token=20) == []
    assert told(ledger, token=24) != []


# -- the window ---------------------------------------------------------------------------

ROWS = {4: 8, 5: 9, 6: 10, 7: 11, 8: 4, 9: 5}
"""Window rows of the ids 4 .. 9."""


def test_mapped_ids_with_window_pages_of_their_own_add_up() -> None:
    assert told(window(r0=range(4, 10)), ROWS, token=12, window=4) == []


@pytest.mark.parametrize(
    ("changes", "window_free", "what"),
    [
        ({12: 6}, 4, "nobody owns id 12, but it is mapped to window row 6"),
        ({5: 0}, 4, "id 5 is in the window, but is mapped to no window row"),
        ({9: 11}, 4, "window row 11 has two ids: 7 is one of them"),
        ({8: 12, 9: 16}, 4, "8 window rows are in use, but the mapping's pages hold 12"),
    ],
)
def test_mapping_that_is_wrong_is_told(
    changes: dict[int, int], window_free: int, what: str
) -> None:
    found = told(window(r0=range(4, 10)), ROWS | changes, token=12, window=window_free)
    assert found == [("mapping_dies_with_its_page", what)]


def test_ids_that_the_window_left_hold_no_window_rows() -> None:
    ledger = window(r0=range(4, 10))
    ledger.left.update(pages(1))
    mapped = {8: 4, 9: 5}
    assert told(ledger, mapped, token=12, window=8) == []
    kept = told(ledger, mapped, token=12, window=4)
    assert kept == [
        ("ids_are_conserved", "4 of window ids are free, expected 8: 4 of 12 are owned"),
        (
            "mapping_dies_with_its_page",
            "8 window rows are in use, but the mapping's pages hold 4",
        ),
    ]
    stale = told(ledger, ROWS, token=12, window=8)
    assert stale == [
        (
            "mapping_dies_with_its_page",
            "4 window rows are in use, but the mapping's pages hold 8",
        )
    ]


@pytest.mark.parametrize("mapped", [{}, {7: 11}, ROWS], ids=["no row", "one row", "all rows"])
def test_page_that_the_window_left_in_part_may_keep_its_rows(mapped: dict[int, int]) -> None:
    """Some engines give up each row, others the page with the last one."""
    ledger = window(r0=range(4, 10))
    ledger.left.update([4, 5, 6])
    rows = mapped | {8: 4, 9: 5}
    free = WINDOW - PAGE * len({row // PAGE for row in rows.values()})
    assert told(ledger, rows, token=12, window=free) == []


def test_page_that_the_window_left_in_part_is_counted() -> None:
    ledger = window(r0=range(4, 10))
    ledger.left.update([4, 5, 6])
    assert [c for c, _ in told(ledger, ROWS, token=12, window=8)] == ["mapping_dies_with_its_page"]


def test_id_that_the_window_had_left_is_new_when_it_is_handed_out_again() -> None:
    ledger = window(r0=pages(1))
    ledger.left.update(pages(1))
    ledger.free(["r0"], 0)
    ledger.hand_out("r1", [4, 5])
    assert told(ledger, {4: 8, 5: 9}, token=16, window=8) == []
    unmapped = "id 5 is in the window, but is mapped to no window row"
    assert told(ledger, {4: 8}, token=16, window=8) == [("mapping_dies_with_its_page", unmapped)]
    lost = "4 of window ids are free, expected 8: 4 of 12 are owned"
    assert told(ledger, {4: 8, 5: 9}, token=16, window=4)[0] == ("ids_are_conserved", lost)


def test_shared_id_is_mapped_once() -> None:
    ledger = window(r0=pages(1))
    ledger.share("r0", "r1", PAGE)
    mapped = dict(zip(pages(1), pages(2), strict=True))
    assert told(ledger, mapped, token=16, window=8) == []
    ledger.free(["r0"], 0)
    assert told(ledger, mapped, token=16, window=8) == []
    assert told(ledger, {}, token=16, window=12) != []
    ledger.free(["r1"], 0)
    assert told(ledger, {}, token=20, window=12) == []
    assert [c for c, _ in told(ledger, mapped, token=20, window=12)] == [
        "mapping_dies_with_its_page"
    ]


def test_mapping_is_looked_at_when_a_group_has_ended() -> None:
    ledger = begin_group(window(r0=range(4, 10)))
    ledger.free(["r0"], 0)
    assert told(ledger, ROWS, token=12, window=0) == []
    ledger.pending = None
    assert told(ledger, {}, token=20, window=12) == []
    assert [c for c, _ in told(ledger, ROWS, token=20, window=12)] == ["mapping_dies_with_its_page"]
