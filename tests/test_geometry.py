"""Which geometries are tried, and their text form."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
import torch

from conformance import Pool
from conformance.geometry import Geometry, geometries, parse_geometry

POOLS = {
    "token": Pool("token", object, kind="token"),
    "mla": Pool("mla", object, kind="mla"),
    "dsa": Pool("dsa", object, kind="dsa"),
    "hybrid": Pool("hybrid", object, kind="hybrid"),
    "hybrid-mla": Pool("hybrid-mla", object, kind="hybrid", attention="mla"),
    "hybrid-dsa": Pool("hybrid-dsa", object, kind="hybrid", attention="dsa"),
}
AXES = ("page_size", "layers", "heads", "head_dim", "v_head_dim", "index_head_dim", "state_layers")
SIZES = (*AXES, "size", "kv_lora_rank", "qk_rope_head_dim", "state_size")

each_pool = pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)


def row_counts(g: Geometry) -> list[int]:
    pages = [g.page_rows] if g.page_size > 1 else []
    return [g.token_rows, *pages, *([g.state_rows] if g.state_size else [])]


def other_axes(g: Geometry) -> set[int]:
    latent = g.kv_lora_rank + g.qk_rope_head_dim
    return {getattr(g, axis) for axis in AXES} | {latent, *g.conv_shape, *g.temporal_shape}


# -- what holds of every geometry ---------------------------------------------------


@each_pool
def test_row_counts_differ_from_each_other_and_from_every_axis(pool: Pool) -> None:
    confused = [
        str(g)
        for g in geometries(pool)
        if len(set(row_counts(g))) < len(row_counts(g)) or other_axes(g) & set(row_counts(g))
    ]
    assert confused == []


@each_pool
def test_no_size_is_two(pool: Pool) -> None:
    shapes = {n for g in geometries(pool) for n in (*g.conv_shape, *g.temporal_shape)}
    assert 2 not in shapes | {getattr(g, size) for g in geometries(pool) for size in SIZES}


@each_pool
def test_first_layer_is_never_zero(pool: Pool) -> None:
    assert min(g.first_layer for g in geometries(pool)) > 0


@each_pool
def test_size_is_a_whole_number_of_pages(pool: Pool) -> None:
    assert {g.size % g.page_size for g in geometries(pool)} == {0}


@each_pool
def test_no_geometry_is_tried_twice(pool: Pool) -> None:
    assert len(set(geometries(pool))) == len(geometries(pool))


@each_pool
def test_first_geometry_hides_least(pool: Pool) -> None:
    first = geometries(pool)[0]
    assert first.page_size > 1
    assert first.chunk_tokens > first.size
    assert first.dtype == torch.bfloat16


@each_pool
def test_page_of_one_token_several_chunks_and_every_dtype_are_tried(pool: Pool) -> None:
    tried = geometries(pool)
    assert 1 in {g.page_size for g in tried}
    assert min(g.chunk_tokens for g in tried) < min(g.size for g in tried)
    assert {g.dtype for g in tried} == {
        torch.bfloat16,
        torch.float16,
        torch.float32,
        torch.float8_e4m3fn,
    }


@pytest.mark.parametrize(
    ("pool", "present"),
    [
        ("token", {"heads", "head_dim", "v_head_dim"}),
        ("mla", {"kv_lora_rank", "qk_rope_head_dim"}),
        ("dsa", {"kv_lora_rank", "qk_rope_head_dim", "index_head_dim"}),
        ("hybrid", {"heads", "head_dim", "v_head_dim", "state_size", "state_layers"}),
        ("hybrid-mla", {"kv_lora_rank", "qk_rope_head_dim", "state_size", "state_layers"}),
    ],
)
def test_sizes_that_a_kind_does_not_have_are_zero(pool: str, present: set[str]) -> None:
    optional = {*SIZES} - {"size", "page_size", "layers"}
    for g in geometries(POOLS[pool]):
        assert {size for size in optional if getattr(g, size)} == present


@pytest.mark.parametrize("pool", ["token", "hybrid"])
def test_rows_of_each_unit(pool: str) -> None:
    g = geometries(POOLS[pool])[0]
    assert g.token_rows == g.size + g.page_size
    assert g.page_rows * g.page_size == g.token_rows
    assert g.state_rows == (g.state_size + 1 if pool == "hybrid" else 0)
    assert g.end_layer == g.first_layer + g.layers - 1


# -- the text form --------------------------------------------------------------------


@each_pool
def test_every_geometry_round_trips(pool: Pool) -> None:
    found = geometries(pool)
    assert tuple(parse_geometry(str(g), pool) for g in found) == found


@each_pool
def test_no_text_is_the_first_geometry(pool: Pool) -> None:
    assert parse_geometry("", pool) == geometries(pool)[0]


def test_first_layer_of_zero_round_trips() -> None:
    pool = Pool("p", object, kind="mla", first_layers=[9, 0])
    found = geometries(pool)
    assert tuple(parse_geometry(str(g), pool) for g in found) == found


def test_text_changes_only_the_sizes_it_names() -> None:
    first = geometries(POOLS["hybrid"])[0]
    text = "page_size=1 dtype=float16 conv_shape=5x3 temporal_shape=6"
    assert parse_geometry(text, POOLS["hybrid"]) == dataclasses.replace(
        first, page_size=1, dtype=torch.float16, conv_shape=(5, 3), temporal_shape=(6,)
    )


def test_geometry_as_text() -> None:
    first = geometries(Pool("p", object, kind="mla", page_sizes=[4], pages=[5]))[0]
    assert str(first) == (
        "size=20 page_size=4 layers=3 first_layer=1 dtype=bfloat16 chunk_tokens=8192 "
        "kv_lora_rank=17 qk_rope_head_dim=8"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "pagesize=4",
            "geometry: 'pagesize=4' is not size=value; did you mean 'page_size'?",
        ),
        ("page_size", "geometry: 'page_size' is not size=value"),
        ("kind=mla", "geometry: 'kind=mla' is not size=value"),
        ("device=cuda", "geometry: 'device=cuda' is not size=value"),
        ("page_size=four", "geometry: page_size='four' is not a whole number"),
        ("page_size=", "geometry: page_size='' is not a whole number"),
        ("conv_shape=3x", "geometry: conv_shape='3x' is not a whole number"),
        ("dtype=bf16", "geometry: 'bf16' is not a torch dtype"),
        ("dtype=nn", "geometry: 'nn' is not a torch dtype"),
    ],
)
def test_text_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}"):
        parse_geometry(f"size=20 {text}", POOLS["mla"])


# -- constraints and device ------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "constraint", "field", "values"),
    [
        ("token", "page_sizes", "page_size", (16, 1)),
        ("token", "layers", "layers", (4,)),
        ("token", "first_layers", "first_layer", (0, 9)),
        ("token", "dtypes", "dtype", (torch.float8_e5m2,)),
        ("token", "chunk_tokens", "chunk_tokens", (6, 100)),
        ("token", "heads", "heads", (4,)),
        ("token", "head_dims", "head_dim", (12, 64)),
        ("token", "v_head_dims", "v_head_dim", (64,)),
        ("mla", "kv_lora_ranks", "kv_lora_rank", (512,)),
        ("mla", "qk_rope_head_dims", "qk_rope_head_dim", (64,)),
        ("dsa", "index_head_dims", "index_head_dim", (128,)),
        ("hybrid", "state_sizes", "state_size", (16, 21)),
    ],
)
def test_constraint_is_honoured(
    kind: Any, constraint: str, field: str, values: tuple[Any, ...]
) -> None:
    found = geometries(Pool("p", object, kind=kind, **{constraint: values}))
    assert list(dict.fromkeys(getattr(g, field) for g in found)) == list(values)


def test_pages_constraint_is_in_pages() -> None:
    found = geometries(Pool("p", object, kind="token", pages=[7], page_sizes=[4]))
    assert {g.size for g in found} == {28}


def test_constraint_of_another_kind_changes_nothing() -> None:
    assert geometries(Pool("p", object, kind="mla", heads=[4])) == geometries(POOLS["mla"])


def test_constraints_that_leave_nothing_are_named() -> None:
    pool = Pool("wide", object, kind="token", page_sizes=[4], pages=[5], heads=[24])
    with pytest.raises(ValueError, match="^Pool 'wide': its constraints ") as caught:
        geometries(pool)
    assert "'heads': (24,)" in str(caught.value)
    assert "leave no geometry in which rows, pages and state rows can be told" in str(caught.value)


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "meta"])
def test_device_is_on_every_geometry_and_not_in_its_text(device: str) -> None:
    pool = POOLS["mla"]
    found = geometries(pool, device)
    assert {g.device for g in found} == {device}
    assert [str(g) for g in found] == [str(g) for g in geometries(pool)]
    assert parse_geometry("", pool, device) == found[0]


@pytest.mark.parametrize("text", ["size=7 page_size=5", "size=0", "size=10 page_size=0"])
def test_size_is_whole_pages(text: str) -> None:
    with pytest.raises(ValueError, match="must be a positive multiple of page_size="):
        parse_geometry(text, POOLS["token"])
