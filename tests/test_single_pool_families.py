"""What is particular to one family of reference pools."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pool_families import (
    FAMILIES,
    LOADED,
    PAGE,
    SAVED,
    SIZE,
    all_rows,
    copy_tokens,
    geometry_of,
    ids,
    make,
    randomize,
    read_all,
    same,
    snapshot,
    tensors_of,
)

from conformance.geometry import Geometry, geometries
from reference_pools import DraftPairPool, PipelinePool, TokenPool
from reference_pools.declarations import make_sharded, make_token

# -- sliding window -----------------------------------------------------------------------


def window_of(*pairs: tuple[int, int]) -> Any:
    """A pool in which these tokens, and no others, have these window rows."""
    pool = make("sliding-window")
    pool.unmap_window(torch.arange(PAGE, PAGE + SIZE))
    pool.map_window(ids(*(token for token, _ in pairs)), ids(*(row for _, row in pairs)))
    return pool


def test_reload_restores_window_rows_that_were_saved_and_are_mapped_again() -> None:
    pool = window_of((5, 9), (6, 4), (7, 11))
    held = [rows.clone() for rows in pool.window.k]
    copy = pool.get_cpu_copy(ids(5, 6, 7, 8))
    pool.unmap_window(ids(5, 6, 7))
    pool.map_window(ids(14, 15, 17), ids(8, 12, 9))
    randomize(pool, seed=1)
    expected = [rows.clone() for rows in pool.window.k]
    for now, was in zip(expected, held, strict=True):
        now[8], now[9] = was[9], was[11]
    # Token 15 has a row but none was saved for it; token 16 had one and has none now.
    pool.load_cpu_copy(copy, ids(14, 16, 17, 15))
    assert same(pool.window.k, expected)


def test_window_that_holds_nothing_travels_as_nothing() -> None:
    pool = window_of((9, 4))
    copy = pool.get_cpu_copy(ids(5, 6))
    before = [rows.clone() for rows in pool.window.v]
    pool.load_cpu_copy(copy, ids(9, 10))
    assert same(pool.window.v, before)
    assert [part.numel() for part in tensors_of(copy.parts["window"])] == []


def test_move_takes_a_window_row_only_where_both_tokens_have_one() -> None:
    pool = window_of((5, 9), (6, 4), (14, 8), (17, 12))
    expected = [rows.clone() for rows in pool.window.k]
    for rows in expected:
        rows[8] = rows[9]
    full = pool.full.k[0][ids(5, 6, 7)].clone()
    pool.move_kv_cache(ids(14, 16, 17), ids(5, 6, 7))
    assert same(pool.window.k, expected)
    assert torch.equal(pool.full.k[0][ids(14, 16, 17)], full)


@pytest.mark.parametrize(
    ("tokens", "rows", "error", "message"),
    [
        (ids(9), ids(4, 5), ValueError, "2 window rows for 1 tokens"),
        (ids(9, 5), ids(4, 5), ValueError, "token 5 has a window row already"),
        (ids(9, 10), ids(4, 8), ValueError, "window row 8 has a token already"),
        (ids(9), ids(3), IndexError, "window_ids contains 3, but rows below 4 are reserved"),
        (ids(9), ids(20), IndexError, "window_ids contains 20, but the last row is 19"),
        (ids(9, 10), ids(4, 4), ValueError, "window_ids contains 4 more than once"),
        (ids(24), ids(4), IndexError, "indices contains 24, but the last row is 23"),
    ],
)
def test_illegal_window_row_is_named(tokens: Any, rows: Any, error: Any, message: str) -> None:
    pool = window_of((5, 8))
    before = pool.mapping.clone()
    with pytest.raises(error, match=f"^{message}"):
        pool.map_window(tokens, rows)
    assert torch.equal(pool.mapping, before)


def test_unmapping_takes_legal_ids_and_is_idempotent() -> None:
    pool = window_of((5, 8))
    pool.unmap_window(ids(5, 6))
    pool.unmap_window(ids(5))
    assert not pool.mapping.any()
    with pytest.raises(IndexError, match="indices contains 2, but rows below 4 are reserved"):
        pool.unmap_window(ids(2))


def test_window_rows_are_located_by_the_mapping_and_full_rows_are_the_ids() -> None:
    pool = window_of((5, 8))
    assert pool.locate("window_v", ids(0, 5, 6).int()).tolist() == [-1, 8, -1]
    assert pool.locate("k", ids(5)) is None


@pytest.mark.parametrize("geometry", geometries(FAMILIES["sliding-window"])[::7], ids=str)
def test_declared_window_is_scattered_and_has_holes(geometry: Geometry) -> None:
    pool = FAMILIES["sliding-window"].make(geometry)
    tokens = torch.arange(geometry.page_size, geometry.token_rows)
    rows = pool.mapping[tokens]
    used = rows[rows > 0]
    assert not pool.mapping[: geometry.page_size].any()
    assert 0 < len(tokens) - len(used) <= len(tokens) // 2
    assert pool.window.size - geometry.page_size < len(used) <= pool.window.size
    assert used.tolist() != sorted(used.tolist())
    assert len(set(used.tolist())) == len(used)


# -- sharded ------------------------------------------------------------------------------


def test_each_rank_holds_its_share_and_tokens_change_owner() -> None:
    pool = make("sharded")
    assert {tuple(rows.shape[:1]) for rows in all_rows(pool)} == {(8,)}
    assert [pool.locate(f"k@{rank}", ids(4, 5, 6, 23)).tolist() for rank in range(3)] == [
        [-1, -1, 2, -1],
        [1, -1, -1, -1],
        [-1, 1, -1, 7],
    ]
    assert pool.locate("v@1", ids(4).int()).dtype == torch.int64
    held = pool.shards[2].v[1][1].clone()  # token 5
    copy = pool.get_cpu_copy(ids(5))
    pool.load_cpu_copy(copy, ids(6))
    pool.move_kv_cache(ids(7), ids(6))
    assert torch.equal(pool.shards[0].v[1][2], held)
    assert torch.equal(pool.shards[1].v[1][2], held)


@pytest.mark.parametrize("ranks", [1, 4, 5, 23])
def test_any_number_of_ranks_below_the_rows(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reference_pools.declarations.RANKS", ranks)
    pool = make_sharded(geometry_of("sharded"))
    randomize(pool, seed=0)
    held = read_all(pool, SAVED)
    copy = pool.get_cpu_copy(SAVED)
    randomize(pool, seed=1)
    expected = copy_tokens(pool, held, LOADED)
    pool.load_cpu_copy(copy, LOADED)
    assert same(snapshot(pool), expected)


@pytest.mark.parametrize("ranks", [0, 24])
def test_number_of_ranks_that_cannot_be(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reference_pools.declarations.RANKS", ranks)
    with pytest.raises(ValueError, match=f"^ranks must be 1 to 23, got {ranks}$"):
        make_sharded(geometry_of("sharded"))


# -- virtual ids --------------------------------------------------------------------------


def test_compaction_changes_rows_and_no_token() -> None:
    pool = make("virtual")
    every = torch.arange(PAGE + SIZE)
    tokens, rows, raw = read_all(pool, every), pool.translate(every), snapshot(pool)
    for _ in range(3):
        pool.compact()
    assert not same(snapshot(pool), raw)
    for before, after in zip(tokens, read_all(pool, every), strict=True):
        assert all(same(before[name], after[name]) for name in ("k", "v"))
    assert torch.equal(rows[:PAGE], every[:PAGE])
    assert sorted(pool.translate(every).tolist()) == every.tolist()
    assert not bool((pool.translate(every)[PAGE:] == rows[PAGE:]).any())


def test_copy_made_before_compaction_is_loaded_after_it() -> None:
    pool = make("virtual")
    held = read_all(pool, SAVED)
    copy = pool.get_cpu_copy(SAVED)
    randomize(pool, seed=1)
    pool.compact()
    expected = copy_tokens(pool, held, LOADED)
    pool.load_cpu_copy(copy, LOADED)
    assert same(snapshot(pool), expected)


def test_compaction_waits_after_its_last_move(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = make("virtual")
    waited: list[Any] = []
    monkeypatch.setattr(
        "torch.cuda.synchronize", lambda _: waited.append((snapshot(pool), pool.table.clone()))
    )
    pool.device = torch.device("cuda:0")
    pool.compact()
    rows, table = waited[-1]
    assert same(rows, snapshot(pool))
    assert torch.equal(table, pool.table)


def test_virtual_ids_are_not_rows() -> None:
    pool = make("virtual")
    assert pool.locate("k", ids(4, 5, 23)).tolist() == [23, 22, 4]
    assert torch.equal(pool.locate("v", SAVED), pool.translate(SAVED))


# -- layouts ------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "widths"), [("fp8", (32, 48, 2, 3)), ("fp4", (16, 24, 2, 3))])
def test_quantized_rows_are_bytes(family: str, widths: tuple[int, ...]) -> None:
    pool = make(family)
    assert {rows.dtype for rows in all_rows(pool)} == {torch.uint8}
    found = {name: tuple(layers[0].shape) for name, layers in pool.buffers().items()}
    names = ("k", "v", "k_scale", "v_scale")
    assert found == {n: (24, 7, width) for n, width in zip(names, widths, strict=True)}


@pytest.mark.parametrize("changes", [{"head_dim": 24}, {"v_head_dim": 24}])
def test_head_dim_that_is_not_whole_blocks_is_named(changes: Any) -> None:
    with pytest.raises(ValueError, match="^head dim 24 is not a multiple of 16, the elements"):
        make("fp8", **changes)


def test_bits_that_cannot_be_packed_are_named() -> None:
    with pytest.raises(ValueError, match="^bits must be 4 or 8, got 6$"):
        FAMILIES["fp8"].make(geometry_of("fp8"), bits=6)


def test_all_layers_of_a_page_lie_side_by_side() -> None:
    pool = make("page-major")
    assert pool.kv.shape == (6, 3, 2, 4, 7, 8)
    parts = [pool.buffers()[name][layer][3] for layer in range(3) for name in ("k", "v")]
    start, part_bytes = pool.kv[3].data_ptr(), parts[0].nbytes
    assert [part.data_ptr() - start for part in parts] == [n * part_bytes for n in range(6)]
    assert all(part.is_contiguous() for part in parts)


def test_stage_finds_layers_by_their_global_ids() -> None:
    pool = make("pipeline")
    assert pool.layer_ids == (1, 4, 5)
    assert pool.first_layer == 1
    assert pool.key_of(4) is pool.k[1]
    assert pool.value_of(5) is pool.v[2]
    for call in (pool.key_of, pool.value_of):
        with pytest.raises(
            IndexError, match="^layer 2 is not on this stage, which holds layers 1, 4, 5$"
        ):
            call(2)


def test_copy_of_other_layers_is_refused() -> None:
    copy = make("pipeline", first_layer=3).get_cpu_copy(SAVED)
    with pytest.raises(ValueError, match="^copy has layout .*'layer_ids', 3, 6, 7"):
        make("pipeline").load_cpu_copy(copy, SAVED)


@pytest.mark.parametrize("layer_ids", [(), (4, 3), (3, 3)])
def test_layer_ids_that_are_no_stage_are_named(layer_ids: Any) -> None:
    with pytest.raises(ValueError, match="^layer_ids must be one or more ascending ids, got "):
        PipelinePool(layer_ids=layer_ids)


def test_draft_and_target_share_their_ids() -> None:
    pool = make("draft-pair")
    assert list(pool.buffers()) == ["k", "v", "draft_k", "draft_v"]
    assert (len(pool.target.k), len(pool.draft.k)) == (3, 1)
    other: TokenPool = make_token(geometry_of("draft-pair", size=16))
    with pytest.raises(ValueError, match="^target has size 20 in pages of 4, draft 16 in pages"):
        DraftPairPool(pool.target, other)


def test_key_only_pool_has_no_values() -> None:
    assert list(make("key-only").buffers()) == ["k"]
