"""The oracle where rows are not the ids: windows, shards, virtual ids; and what moves."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance import Pool
from conformance.adapters.plain import Plain
from conformance.build import build
from conformance.cells import Cells
from conformance.geometry import geometries
from conformance.model import Model
from reference_pools.declarations import (
    make_dsa,
    make_hybrid,
    make_page_major,
    make_sharded,
    make_sliding_window,
    make_token,
    make_virtual,
)

SIZES: dict[str, Any] = {"page_sizes": [4], "pages": [9], "first_layers": [7]}
TABLES = Plain(metadata=["mapping", "table"])
POOLS = {
    "token": Pool("token", make_token, kind="token", **SIZES),
    "page-major": Pool("page-major", make_page_major, kind="token", **SIZES),
    "dsa": Pool("dsa", make_dsa, kind="dsa", **SIZES),
    "hybrid": Pool("hybrid", make_hybrid, kind="hybrid", **SIZES),
    "window": Pool("window", make_sliding_window, kind="token", adapter=TABLES, **SIZES),
    "sharded": Pool("sharded", make_sharded, kind="token", **SIZES),
    "virtual": Pool("virtual", make_virtual, kind="token", adapter=TABLES, **SIZES),
}
"""Tokens 7, 11, 15, ... of `window` are out of the window."""


def begin(kind: str) -> tuple[Any, Model]:
    pool = POOLS[kind]
    made, inventory = build(pool, geometries(pool)[0])
    return made, Model(inventory.buffers, 4, pool.ids == "page")


def told(model: Model, cells: Cells | None = None) -> str:
    found = model.first_difference(cells)
    return "" if found is None else model.describe(found)


def ids(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


# -- where a token is ----------------------------------------------------------------------


def rows_of(model: Model) -> list[torch.Tensor]:
    """The bytes that the pool holds now, buffer by buffer."""
    return [torch.stack(buffer.rows) for buffer in model.actual]


def changed(model: Model, before: list[torch.Tensor]) -> dict[str, list[int]]:
    """The rows of each buffer that are not as they were, in any layer."""
    found = {
        buffer.name: now.ne(old).any(-1).any(0).nonzero().flatten().tolist()
        for buffer, now, old in zip(model.actual, rows_of(model), before, strict=True)
    }
    return {name: rows for name, rows in found.items() if rows}


def test_token_is_written_where_it_is_located() -> None:
    _, model = begin("sharded")
    before = rows_of(model)
    model.write("r0", (10,), None)
    assert changed(model, before) == {"k@1": [3], "v@1": [3]}
    assert told(model) == ""


def test_token_out_of_the_window_has_no_window_row() -> None:
    made, model = begin("window")
    before = rows_of(model)
    model.write("r0", (7, 8), None)
    window = [int(made.mapping[8])]
    assert changed(model, before) == {
        "k": [7, 8],
        "v": [7, 8],
        "window_k": window,
        "window_v": window,
    }
    assert told(model) == ""


@pytest.mark.parametrize(("token", "inside"), [(8, True), (9, False)])
def test_difference_in_a_located_row_is_inside_or_outside(token: int, inside: bool) -> None:
    made, model = begin("window")
    made.window.v[1][made.mapping[token]] += 1
    found = model.first_difference(model.cells((7, 8), None))
    assert found is not None
    assert (model.actual[found.buffer].name, found.cell) == ("window_v", int(made.mapping[token]))
    assert found.inside is inside


# -- whose bytes a located row holds --------------------------------------------------------


def test_located_row_is_told_by_its_token() -> None:
    made, model = begin("window")
    model.write("r0", (4, 7, 9), None)
    nine, four = (int(made.mapping[token]) for token in (9, 4))
    made.window.k[1][nine] = made.window.k[1][four]
    assert told(model) == (
        f"token row {nine} of window_k, layer 8: "
        f"holds token 0 of r0 (window_k, layer 8, row {four}, write 1), "
        f"expected token 2 of r0 (window_k, layer 8, row {nine}, write 1)"
    )


def test_extended_request_counts_on() -> None:
    made, model = begin("virtual")
    model.write("r0", (4, 5), None)
    model.write("r0", (9,), None, first_token=2)
    row, other = (int(made.table[token]) for token in (9, 5))
    made.inner.k[0][row] = made.inner.k[0][other]
    assert f"row {row} of k, layer 7: holds token 1 of r0 (k, layer 7, row {other}, " in told(model)
    assert f"expected token 2 of r0 (k, layer 7, row {row}, write 2)" in told(model)


def test_bytes_on_the_wrong_rank_are_told_by_their_own() -> None:
    made, model = begin("sharded")
    model.write("r0", (9, 10), None)
    made.shards[1].k[0][3] = made.shards[0].k[0][3]
    assert told(model) == (
        "token row 3 of k@1, layer 7: holds token 0 of r0 (k@0, layer 7, row 3, write 1), "
        "expected token 1 of r0 (k@1, layer 7, row 3, write 1)"
    )


def test_located_row_that_no_token_of_the_write_has_is_nobodys() -> None:
    made, model = begin("window")
    row = int(made.mapping[9])
    before = made.window.k[0][row].clone()
    model.write("r0", (9,), None)
    made.window.k[0][row] = before
    assert f"holds bytes of nobody (window_k, layer 7, row {row}, write 0)" in told(model)


def test_zero_bytes_are_told_as_such() -> None:
    made, model = begin("token")
    model.write("r0", (5,), None)
    made.k[1][5] = 0
    assert told(model) == (
        "token row 5 of k, layer 8: holds zero bytes, "
        "expected token 0 of r0 (k, layer 8, row 5, write 1)"
    )


def test_row_that_must_be_zero_is_told() -> None:
    _, model = begin("hybrid")
    model.write("r0", (5,), 3)
    model.zero_state(3)
    assert told(model).startswith("state row 3 of conv, layer 0: holds the state of r0 (")
    assert told(model).endswith("expected zero bytes (and 3 more cells of conv)")


# -- copies of what is located --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["window", "sharded", "virtual", "page-major"])
def test_pool_that_restores_what_is_located_is_not_accused(kind: str) -> None:
    """Some tokens are in the window before and after, some only before or only after."""
    made, model = begin(kind)
    source, target = (4, 5, 7, 8, 11), (13, 15, 14, 12, 19)
    model.write("r0", source, None)
    saved = model.save(model.cells(source, None))
    copy = made.get_cpu_copy(ids(*source))
    model.overwrite()
    made.load_cpu_copy(copy, ids(*target))
    cells = model.cells(target, None)
    model.restore(saved, cells)
    assert told(model, cells) == ""


def restored(kind: str, source: tuple[int, ...], target: tuple[int, ...]) -> Model:
    """A model that expects a reload which the pool has not made."""
    _, model = begin(kind)
    model.write("r0", source, None)
    saved = model.save(model.cells(source, None))
    model.overwrite()
    model.restore(saved, model.cells(target, None))
    return model


def test_token_on_another_rank_is_expected_there() -> None:
    model = restored("sharded", (9,), (10,))
    assert changed(model, [image.bytes for image in model.expected]) == {"k@1": [3], "v@1": [3]}
    assert "expected token 0 of r0 (k@0, layer 7, row 3, write 1)" in told(model)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [((4,), (5,), True), ((4,), (7,), False), ((7,), (4,), False), ((7,), (11,), False)],
    ids=["in before and after", "left", "came back", "out"],
)
def test_window_row_is_expected_where_the_token_has_one_before_and_after(
    source: Any, target: Any, expected: bool
) -> None:
    model = restored("window", source, target)
    wrong = changed(model, [image.bytes for image in model.expected])
    assert {"k", "v"} <= wrong.keys()
    assert ({"window_k", "window_v"} <= wrong.keys()) is expected
    assert wrong["k"] == list(target)


def test_rows_are_located_when_the_copy_is_reloaded() -> None:
    made, model = begin("virtual")
    model.write("r0", (4, 5), None)
    every = model.cells(tuple(range(4, 40)), None)
    before, copy = model.save(every), made.get_cpu_copy(ids(4, 5))
    saved = model.save(model.cells((4, 5), None))
    made.compact()
    assert told(model) != ""
    model.restore(before, every)
    assert told(model) == ""
    model.overwrite()
    made.load_cpu_copy(copy, ids(4, 5))
    assert told(model) != ""
    model.restore(saved, model.cells((4, 5), None))
    assert told(model) == ""


# -- move -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", POOLS)
def test_pool_that_moves_every_buffer_is_not_accused(kind: str) -> None:
    """Into and out of the window, to other ranks, and across pages."""
    made, model = begin(kind)
    state = 3 if kind == "hybrid" else None
    rows = tuple(range(4, 20))
    model.write("r0", rows, state)
    sources, targets = (12, 15, 17, 18), (4, 5, 7, 10)
    made.move_kv_cache(ids(*targets), ids(*sources))
    assert told(model) != ""
    model.move(model.cells(sources, None), model.cells(targets, None))
    assert told(model) == ""


@pytest.mark.parametrize("kind", [kind for kind in POOLS if kind != "window"])
def test_move_that_leaves_a_buffer_out_is_told(kind: str) -> None:
    made, model = begin(kind)
    model.write("r0", tuple(range(4, 20)), None)
    last = [*made.buffers().values()][-3 if kind == "hybrid" else -1]
    before = [rows.clone() for rows in last]
    made.move_kv_cache(ids(4, 5), ids(12, 16))
    for rows, old in zip(last, before, strict=True):
        rows.copy_(old)
    targets = model.cells((4, 5), None)
    model.move(model.cells((12, 16), None), targets)
    found = model.first_difference(targets)
    assert found is not None
    assert found.inside
    assert "holds token " in model.describe(found)


def test_moved_tokens_are_told_by_where_they_were_written() -> None:
    _, model = begin("token")
    model.write("r0", (4, 5, 6), None)
    model.move(model.cells((6,), None), model.cells((4,), None))
    assert told(model) == (
        "token row 4 of k, layer 7: holds token 0 of r0 (k, layer 7, row 4, write 1), "
        "expected token 2 of r0 (k, layer 7, row 6, write 1) (and 2 more cells of k)"
    )


def test_move_changes_no_state() -> None:
    made, model = begin("hybrid")
    model.write("r0", (4, 5), 3)
    made.move_kv_cache(ids(4), ids(5))
    model.move(model.cells((5,), None), model.cells((4,), None))
    made.state.conv[0, 3] += 1
    assert told(model).startswith("state row 3 of conv, layer 0: ")


# -- state rows -------------------------------------------------------------------------------


def test_state_row_is_expected_in_its_copy_and_nowhere_else() -> None:
    made, model = begin("hybrid")
    model.write("r0", (5,), 3)
    model.copy_state(3, 4)
    assert told(model).startswith("state row 4 of conv, layer 0: holds bytes of nobody (")
    assert "expected the state of r0 (conv, layer 0, row 3, write 1)" in told(model)
    made.copy_state(ids(3), ids(4))
    assert told(model) == ""


@pytest.mark.parametrize("buffer", ["conv", "temporal"])
def test_copy_of_one_state_buffer_alone_is_told(buffer: str) -> None:
    made, model = begin("hybrid")
    model.write("r0", (5,), 3)
    left_out = getattr(made.state, buffer)
    before = left_out.clone()
    made.copy_state(ids(3), ids(4))
    left_out.copy_(before)
    model.copy_state(3, 4)
    assert told(model).startswith(f"state row 4 of {buffer}, layer 0: ")


def test_zeroed_state_row_is_expected_to_be_zero_and_no_other() -> None:
    made, model = begin("hybrid")
    model.write("r0", (5,), 3)
    model.zero_state(3)
    made.zero_state(ids(3))
    assert told(model) == ""
    made.zero_state(ids(4))
    assert told(model).startswith("state row 4 of conv, layer 0: holds zero bytes, expected ")
