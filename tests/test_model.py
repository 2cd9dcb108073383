"""The oracle: what differs, where, and whose bytes are there."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from conformance import Pool
from conformance.build import build
from conformance.cells import Cells
from conformance.geometry import Geometry, geometries
from conformance.model import Model
from reference_pools.declarations import make_dsa, make_hybrid, make_token

SIZES: dict[str, Any] = {"page_sizes": [4], "pages": [9], "first_layers": [7]}
POOLS = {
    "token": Pool("token", make_token, kind="token", **SIZES),
    "dsa": Pool("dsa", make_dsa, kind="dsa", **SIZES),
    "hybrid": Pool("hybrid", make_hybrid, kind="hybrid", **SIZES),
}
NONE = Cells(*(torch.empty(0, dtype=torch.int64) for _ in dataclasses.fields(Cells)))


def geometry_of(kind: str) -> Geometry:
    return geometries(POOLS[kind])[0]


def begin(kind: str) -> tuple[Any, Model]:
    pool = POOLS[kind]
    made, inventory = build(pool, geometry_of(kind))
    return made, Model(inventory.buffers, 4, pool.ids == "page")


def told(model: Model, cells: Cells | None = None) -> str:
    found = model.first_difference(cells)
    assert found is not None
    return model.describe(found)


@pytest.mark.parametrize("kind", POOLS)
def test_nothing_differs_after_the_calls_that_write_both(kind: str) -> None:
    _, model = begin(kind)
    assert model.first_difference() is None
    model.write("r0", (4, 5, 6), 3 if kind == "hybrid" else None)
    assert model.first_difference() is None
    model.overwrite()
    assert model.first_difference() is None


# -- cells -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "rows", "pages", "tail"),
    [
        ("token", (4, 9, 5), [], []),
        ("token", (), [], []),
        ("dsa", (4,), [1], [5, 6, 7]),
        ("dsa", (4, 5, 6, 7), [1], []),
        ("dsa", (6, 7, 20), [1, 5], [21, 22, 23]),
        ("dsa", (), [], []),
    ],
)
def test_cells_of_rows(kind: str, rows: Any, pages: list[int], tail: list[int]) -> None:
    _, model = begin(kind)
    cells = model.cells(rows, None)
    assert cells.of("token").tolist() == list(rows)
    assert (cells.of("page").tolist(), cells.tail.tolist()) == (pages, tail)
    assert cells.of("state").tolist() == []


def test_cells_of_a_state_id() -> None:
    _, model = begin("hybrid")
    assert model.cells((4,), 3).of("state").tolist() == [3]


# -- where a difference is --------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "inside"), [(4, True), (6, True), (8, False), (0, False), (39, False)]
)
def test_difference_is_inside_or_outside_the_rows(row: int, inside: bool) -> None:
    made, model = begin("token")
    made.v[2][row] += 1
    found = model.first_difference(model.cells((4, 6), None))
    assert found is not None
    assert (found.layer, found.cell, found.inside, found.others) == (2, row, inside, 0)


def test_difference_inside_comes_before_one_outside() -> None:
    made, model = begin("token")
    made.k[0][0] += 1
    made.k[2][6] += 1
    found = model.first_difference(model.cells((4, 6), None))
    assert found is not None
    assert (found.layer, found.cell, found.inside, found.others) == (2, 6, True, 1)


@pytest.mark.parametrize("cells", [None, NONE])
def test_without_cells_every_difference_is_outside(cells: Cells | None) -> None:
    made, model = begin("token")
    made.k[1][5] += 1
    found = model.first_difference(cells)
    assert found is not None
    assert not found.inside


def test_one_bit_is_a_difference() -> None:
    made, model = begin("token")
    made.v[1].view(torch.uint8)[30, 3, 5] ^= 1
    found = model.first_difference()
    assert found is not None
    assert (model.actual[found.buffer].name, found.layer, found.cell) == ("v", 1, 30)


def test_payload_is_told_before_companions_and_state() -> None:
    made, model = begin("hybrid")
    made.state.conv[0, 3] += 1
    assert told(model).startswith("state row 3 of conv, layer 0: ")
    made.attention.v[0][9] += 1
    assert told(model).startswith("token row 9 of v, layer 7: ")


def test_adopted_buffer_no_longer_differs() -> None:
    made, model = begin("token")
    made.k[0][4] += 1
    made.v[0][5] += 1
    first = model.first_difference()
    assert first is not None
    model.adopt(first.buffer)
    second = model.first_difference()
    assert second is not None
    assert [model.actual[d.buffer].name for d in (first, second)] == ["k", "v"]
    model.adopt(second.buffer)
    assert model.first_difference() is None


# -- whose bytes ------------------------------------------------------------------------


def test_describe_names_the_token_and_its_request() -> None:
    made, model = begin("token")
    model.write("r0", (4, 9, 5), None)
    made.k[1][9] = made.k[1][5]
    assert told(model) == (
        "token row 9 of k, layer 8: holds token 2 of r0 (k, layer 8, row 5, write 1), "
        "expected token 1 of r0 (k, layer 8, row 9, write 1)"
    )


def test_describe_names_bytes_of_nobody() -> None:
    made, model = begin("token")
    before = made.v[0][9].clone()
    model.write("r0", (9,), None)
    made.v[0][9] = before
    assert told(model) == (
        "token row 9 of v, layer 7: holds bytes of nobody (v, layer 7, row 9, write 0), "
        "expected token 0 of r0 (v, layer 7, row 9, write 1)"
    )


def test_describe_names_an_older_request_and_another_layer() -> None:
    made, model = begin("token")
    model.write("r0", (4,), None)
    older = made.k[2][4].clone()
    model.write("r1", (4,), None)
    made.k[0][4] = older
    assert "holds token 0 of r0 (k, layer 9, row 4, write 1)" in told(model)
    assert "expected token 0 of r1 (k, layer 7, row 4, write 2)" in told(model)


def test_describe_names_the_state_of_a_request() -> None:
    made, model = begin("hybrid")
    model.write("r0", (4,), 3)
    made.state.temporal[1, 5] = made.state.temporal[1, 3]
    assert "holds the state of r0 (temporal, layer 1, row 3, write 1)" in told(model)
    assert told(model).startswith("state row 5 of temporal, layer 1: ")


def test_describe_tells_how_many_bytes_are_right() -> None:
    made, model = begin("token")
    width = made.k[0][4].nbytes
    made.k[0].view(torch.uint8).view(40, width)[4, 10:] ^= 0xFF
    assert f"holds the first 10 of its {width} bytes, then bytes that nobody wrote" in told(model)


def test_describe_names_bytes_that_nobody_wrote() -> None:
    made, model = begin("token")
    made.k[0].view(torch.uint8)[4] ^= 0xFF
    assert "holds bytes that nobody wrote, expected bytes of nobody (k, layer 7, " in told(model)


@pytest.mark.parametrize(("rows", "others"), [(1, ""), (3, " (and 2 more cells of k)")])
def test_describe_counts_the_other_cells(rows: int, others: str) -> None:
    made, model = begin("token")
    made.k[1].view(torch.uint8)[4 : 4 + rows] ^= 0xFF
    assert told(model).endswith(f"write 0){others}")


# -- copies -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", POOLS)
def test_restored_cells_are_expected_and_no_others(kind: str) -> None:
    _, model = begin(kind)
    state = 3 if kind == "hybrid" else None
    model.write("r0", (4, 5, 6, 7), state)
    saved = model.save(model.cells((4, 5, 6, 7), state))
    model.overwrite()
    to = model.cells((8, 9, 10, 11), None if state is None else 5)
    model.restore(saved, to)
    found = model.first_difference(to)
    assert found is not None
    assert found.inside
    for image, payload in zip(model.expected, saved.cells, strict=True):
        image.buffer.scatter(to.of(image.buffer.addressed_by), payload)
    assert model.first_difference(to) is None


def reload_page(kind_of_tail: str) -> Model:
    """Token 4 of a page of four is saved, and reloaded into row 8: slots 9 .. 11 are its tail."""
    made, model = begin("dsa")
    model.write("r0", (4,), None)
    source, target = model.cells((4,), None), model.cells((8,), None)
    saved = model.save(source)
    tails = {
        "saved": [image.gather(source.tail) for image in model.expected],
        "swapped": [image.gather(source.tail.flip(0)) for image in model.expected],
    }
    model.overwrite()
    for number, image in enumerate(model.expected):
        image.buffer.scatter(target.token, saved.cells[number])
        if kind_of_tail in tails:
            image.buffer.scatter(target.tail, tails[kind_of_tail][number])
        if kind_of_tail == "one slot saved":
            image.buffer.scatter(target.tail[1:2], tails["saved"][number][:, 1:2])
    if kind_of_tail == "zero":
        made.index_k[0][2] = 0
        model.actual[1].scatter(target.token, saved.cells[1])
    model.restore(saved, target)
    return model


@pytest.mark.parametrize("tail", ["old", "saved", "one slot saved"])
def test_tail_of_the_last_page_may_hold_old_or_saved_bytes(tail: str) -> None:
    assert reload_page(tail).first_difference() is None


@pytest.mark.parametrize("tail", ["zero", "swapped"])
def test_tail_of_the_last_page_may_hold_nothing_else(tail: str) -> None:
    model = reload_page(tail)
    found = model.first_difference(model.cells((8,), None))
    assert found is not None
    assert found.cell in (9, 10, 11)
    assert not found.inside


def test_slots_before_a_run_have_no_tail() -> None:
    made, model = begin("dsa")
    model.write("r0", (6, 7), None)
    saved = model.save(model.cells((6, 7), None))
    to = model.cells((10, 11), None)
    for image, payload in zip(model.expected, saved.cells, strict=True):
        image.buffer.scatter(to.token, payload)
    made.latent[0][9] = made.latent[0][5]
    model.restore(saved, to)
    found = model.first_difference(to)
    assert found is not None
    assert (found.cell, found.inside) == (9, False)
