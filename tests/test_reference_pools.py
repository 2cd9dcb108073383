"""The reference pools by example: what they refuse and how, and what the suite does not call."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance import Pool
from conformance.geometry import Geometry, geometries
from reference_pools import KVPool, TokenPool
from reference_pools.declarations import ATTENTION, make_hybrid
from reference_pools.transfer import offload_rows, reload_rows, synchronize

PAGE, SIZE = 4, 20
SIZES: dict[str, Any] = {"page_sizes": [PAGE], "pages": [5], "chunk_tokens": [8192]}
KINDS = ("token", "mla", "dsa", "hybrid")

each_kind = pytest.mark.parametrize("kind", KINDS)


def geometry_of(kind: Any) -> Geometry:
    return geometries(Pool("p", object, kind=kind, **SIZES))[0]


def make(kind: str, **changes: Any) -> Any:
    geometry = dataclasses.replace(geometry_of(kind), **changes)
    pool = make_hybrid(geometry) if kind == "hybrid" else ATTENTION[kind](geometry)
    randomize(pool)
    return pool


def randomize(pool: KVPool) -> None:
    generator = torch.Generator().manual_seed(0)
    for rows in all_rows(pool):
        rows.copy_(torch.randint(0, 100, rows.shape, generator=generator).to(rows.dtype))


def all_rows(pool: KVPool) -> list[Tensor]:
    return [rows for layers in pool.buffers().values() for rows in layers]


def snapshot(pool: KVPool) -> list[Tensor]:
    return [rows.clone() for rows in all_rows(pool)]


def same(left: list[Tensor], right: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def ids(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


# -- refusals ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        (ids(4, 24), IndexError, "indices contains 24, but the last row is 23"),
        (ids(4, -3), IndexError, "indices contains -3; ids are not negative"),
        (ids(4, 2), IndexError, "indices contains 2, but rows below 4 are reserved for padding"),
        (ids(9, 4, 9), ValueError, "indices contains 9 more than once"),
        ([4, 5], TypeError, "indices must be a tensor of ids, got list"),
        (ids(4).float(), TypeError, "indices must be int32 or int64, got torch.float32"),
        (ids(4).bool(), TypeError, "indices must be int32 or int64, got torch.bool"),
        (ids(4)[None], ValueError, "indices must have one dimension, got shape (1, 1)"),
        (torch.tensor(4), ValueError, "indices must have one dimension, got shape ()"),
    ],
)
@each_kind
def test_illegal_ids_are_named(kind: str, indices: Any, error: Any, message: str) -> None:
    pool = make(kind)
    copy = pool.get_cpu_copy(ids(4, 5))
    before = snapshot(pool)
    with pytest.raises(error) as offload:
        pool.get_cpu_copy(indices)
    with pytest.raises(error) as reload:
        pool.load_cpu_copy(copy, indices)
    assert (str(offload.value), str(reload.value)) == (message, message)
    assert same(snapshot(pool), before)


@each_kind
def test_copy_of_another_length_is_refused(kind: str) -> None:
    pool = make(kind)
    copy = pool.get_cpu_copy(ids(4, 5))
    with pytest.raises(ValueError, match="^copy holds 2 tokens, but 3 ids were given$"):
        pool.load_cpu_copy(copy, ids(4, 5, 6))


@pytest.mark.parametrize("changes", [{"layers": 4}, {"dtype": torch.float16}])
@each_kind
def test_copy_of_another_layout_is_refused(kind: str, changes: Any) -> None:
    copy = make(kind, **changes).get_cpu_copy(ids(4, 5))
    with pytest.raises(ValueError, match="^copy has layout .* this pool has "):
        make(kind).load_cpu_copy(copy, ids(4, 5))


@each_kind
def test_copy_of_another_type_is_refused(kind: str) -> None:
    with pytest.raises(TypeError, match="^expected a HostCopy, got list$"):
        make(kind).load_cpu_copy([], ids(4, 5))


@pytest.mark.parametrize("kind", ["token", "mla", "dsa"])
def test_pool_without_state_refuses_state_ids(kind: str) -> None:
    pool = make(kind)
    copy = pool.get_cpu_copy(ids(4))
    with pytest.raises(ValueError, match="this pool holds no state, but was given mamba_indices"):
        pool.get_cpu_copy(ids(4), mamba_indices=ids(1))
    with pytest.raises(ValueError, match="this pool holds no state, but was given mamba_indices"):
        pool.load_cpu_copy(copy, ids(4), mamba_indices=ids(1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 21}, "size 21 is not a positive multiple of page_size 4"),
        ({"size": 0}, "size 0 is not a positive multiple of page_size 4"),
        ({"page_size": 0}, "size 20 is not a positive multiple of page_size 0"),
        ({"layers": 0}, "layers 0 and chunk_tokens 8192 must be positive"),
        ({"chunk_tokens": 0}, "layers 3 and chunk_tokens 0 must be positive"),
        ({"first_layer": -1}, "first_layer -1 must not be negative"),
    ],
)
def test_illegal_geometry_is_named(changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make("token", **changes)


# -- state ------------------------------------------------------------------------


@pytest.mark.parametrize("state", [torch.tensor(3), ids(3), ids(3).int(), ids(5, 3)], ids=str)
def test_state_ids_of_any_rank_travel(state: Tensor) -> None:
    pool = make("hybrid")
    rows = state.reshape(-1)
    before = (pool.state.conv[:, rows].clone(), pool.state.temporal[:, rows].clone())
    copy = pool.get_cpu_copy(ids(4), mamba_indices=state)
    pool.state.conv.zero_()
    pool.state.temporal.zero_()
    pool.load_cpu_copy(copy, ids(4), mamba_indices=rows + 1)
    assert torch.equal(pool.state.conv[:, rows + 1], before[0])
    assert torch.equal(pool.state.temporal[:, rows + 1], before[1])
    assert int(pool.state.conv.any(-1).any(-1)[0].sum()) == len(rows)


def test_no_state_ids_leave_state_alone() -> None:
    pool = make("hybrid")
    before = snapshot(pool)[-8:]
    pool.load_cpu_copy(pool.get_cpu_copy(ids(4), mamba_indices=None), ids(9), mamba_indices=None)
    assert same(snapshot(pool)[-8:], before)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (ids(0), "mamba_indices contains 0, but rows below 1 are reserved for padding"),
        (torch.tensor(12), "mamba_indices contains 12, but the last row is 11"),
        (ids(-1), "mamba_indices contains -1; ids are not negative"),
    ],
    ids=["reserved", "too large", "negative"],
)
def test_illegal_state_ids_are_named_before_anything_moves(state: Tensor, message: str) -> None:
    pool = make("hybrid")
    copy = pool.get_cpu_copy(ids(4), mamba_indices=ids(1))
    before = snapshot(pool)
    with pytest.raises(IndexError) as offload:
        pool.get_cpu_copy(ids(4), mamba_indices=state)
    with pytest.raises(IndexError) as reload:
        pool.load_cpu_copy(copy, ids(9), mamba_indices=state)
    assert (str(offload.value), str(reload.value)) == (message, message)
    assert same(snapshot(pool), before)


@pytest.mark.parametrize(
    ("saved", "loaded", "message"),
    [
        (None, ids(1), "copy holds no state, but mamba_indices is"),
        (ids(1), None, "copy holds state, but mamba_indices is None"),
        (ids(1), ids(1, 3), "copy holds 1 state rows, but 2 were given"),
    ],
    ids=["no state saved", "no state wanted", "another number"],
)
def test_state_that_does_not_fit_is_refused(saved: Any, loaded: Any, message: str) -> None:
    pool = make("hybrid")
    copy = pool.get_cpu_copy(ids(4), mamba_indices=saved)
    before = snapshot(pool)
    with pytest.raises(ValueError, match=f"^{message}"):
        pool.load_cpu_copy(copy, ids(9), mamba_indices=loaded)
    assert same(snapshot(pool), before)


# -- DSA ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        (ids(4, 6), "id 6 does not follow 4 in its page of 4 rows"),
        (ids(4, 5, 10), "id 10 does not follow 5 in its page of 4 rows"),
        (ids(5, 4), "id 4 does not follow 5 in its page of 4 rows"),
        (ids(6, 7, 9), "id 9 does not follow 7 in its page of 4 rows"),
    ],
    ids=str,
)
def test_dsa_refuses_ids_that_jump_inside_a_page(indices: Tensor, message: str) -> None:
    pool = make("dsa")
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        pool.get_cpu_copy(indices)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("indices", "pages", "start"),
    [
        (ids(), [], 0),
        (ids(4), [1], 0),
        (ids(7), [1], 3),
        (ids(6, 7, 20, 21), [1, 5], 2),
        (ids(20, 21, 22, 23, 8), [5, 2], 0),
    ],
    ids=str,
)
def test_dsa_pages_of_a_run(indices: Tensor, pages: list[int], start: int) -> None:
    found, slot = make("dsa").pages_of(indices)
    assert (found.tolist(), slot) == (pages, start)


def test_dsa_refuses_to_reload_at_another_slot() -> None:
    pool = make("dsa")
    copy = pool.get_cpu_copy(ids(6, 7))
    before = snapshot(pool)
    with pytest.raises(ValueError, match="^copy begins at slot 2 of a page, indices at slot 1$"):
        pool.load_cpu_copy(copy, ids(9, 10))
    assert same(snapshot(pool), before)


def test_dsa_restores_the_whole_last_page_and_keeps_the_slots_before_a_run() -> None:
    pool = make("dsa")
    copy = pool.get_cpu_copy(ids(6, 7, 8))
    saved = [part.clone() for part in pool.slots(pool.index_k[0])]
    randomize(pool)
    for rows in pool.index_k:
        rows += 100
    before = [part.clone() for part in pool.slots(pool.index_k[0])]
    pool.load_cpu_copy(copy, ids(18, 19, 12))
    for after, was, had in zip(pool.slots(pool.index_k[0]), before, saved, strict=True):
        assert torch.equal(after[4, :2], was[4, :2])
        assert torch.equal(after[4, 2:], had[1, 2:])
        assert torch.equal(after[3], had[2])
        assert torch.equal(after[[0, 1, 2, 5]], was[[0, 1, 2, 5]])


# -- moves ----------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "buffers"), [("token", 2), ("mla", 1), ("hybrid", 2)])
def test_move_copies_tokens_in_every_layer(kind: str, buffers: int) -> None:
    pool = make(kind)
    expected = snapshot(pool)
    for rows in expected[: 3 * buffers]:
        rows[ids(20, 9)] = rows[ids(5, 23)]
    pool.move_kv_cache(ids(20, 9), ids(5, 23))
    assert same(snapshot(pool), expected)


def test_dsa_moves_keys_and_scales_across_pages() -> None:
    pool = make("dsa")
    expected = [
        [rows.clone(), *(part.clone().flatten(0, 1) for part in pool.slots(pages))]
        for rows, pages in zip(pool.latent, pool.index_k, strict=True)
    ]
    pool.move_kv_cache(ids(20, 9), ids(5, 23))
    for (latent, keys, scales), rows, pages in zip(
        expected, pool.latent, pool.index_k, strict=True
    ):
        for part in (latent, keys, scales):
            part[ids(20, 9)] = part[ids(5, 23)].clone()
        assert torch.equal(rows, latent)
        found = [part.flatten(0, 1) for part in pool.slots(pages)]
        assert same(found, [keys, scales])


@pytest.mark.parametrize(
    ("target", "source", "error", "message"),
    [
        (ids(4, 5), ids(6), ValueError, "2 targets for 1 sources"),
        (ids(4, 5), ids(6, 4), ValueError, "4 is both in tgt_loc and in src_loc"),
        (ids(24), ids(6), IndexError, "tgt_loc contains 24, but the last row is 23"),
        (ids(6), ids(3), IndexError, "src_loc contains 3, but rows below 4 are reserved"),
    ],
)
@each_kind
def test_illegal_move_changes_nothing(
    kind: str, target: Tensor, source: Tensor, error: Any, message: str
) -> None:
    pool = make(kind)
    before = snapshot(pool)
    with pytest.raises(error, match=f"^{message}"):
        pool.move_kv_cache(target, source)
    assert same(snapshot(pool), before)


# -- chunks and transfers ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunk", "n", "sizes"),
    [(5, 0, []), (5, 1, [1]), (5, 5, [5]), (5, 6, [5, 1]), (4, 12, [4, 4, 4]), (100, 7, [7])],
)
def test_rows_are_copied_a_chunk_at_a_time(chunk: int, n: int, sizes: list[int]) -> None:
    pool = make("token", chunk_tokens=chunk)
    copy = pool.get_cpu_copy(torch.arange(4, 4 + n))
    assert [[len(part) for part in layer] for layer in copy.chunks["v"]] == [sizes] * 3
    assert copy.tokens == n


@pytest.mark.parametrize(
    ("chunk", "sizes"), [(3, [1, 1, 1]), (4, [1, 1, 1]), (7, [1, 1, 1]), (8, [2, 1]), (99, [3])]
)
def test_index_pages_are_copied_in_the_pages_of_a_chunk(chunk: int, sizes: list[int]) -> None:
    copy = make("dsa", chunk_tokens=chunk).get_cpu_copy(torch.arange(6, 14))
    assert [[len(part) for part in layer] for layer in copy.chunks["index_k"]] == [sizes] * 3


@pytest.mark.parametrize("chunk", [1, 3, 8])
def test_transfer_round_trips_and_shares_nothing(chunk: int) -> None:
    rows = torch.arange(24.0).reshape(8, 3)
    chunks = offload_rows(rows, ids(6, 1, 4), chunk)
    expected = rows[ids(6, 1, 4)].clone()
    rows.zero_()
    reload_rows(rows, ids(0, 7, 3), chunks)
    assert torch.equal(rows[ids(0, 7, 3)], expected)
    assert not rows[ids(1, 2, 4, 5, 6)].any()


@pytest.mark.parametrize(("device", "calls"), [("cpu", []), ("meta", []), ("cuda:0", ["cuda:0"])])
def test_only_a_device_with_queues_is_waited_for(
    device: str, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: waited.append(str(device)))
    synchronize(torch.device(device))
    assert waited == calls


@pytest.mark.parametrize("call", ["offload", "reload", "move"])
@each_kind
def test_every_verb_waits_after_its_last_transfer(
    kind: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make(kind)
    copy = pool.get_cpu_copy(ids(4))
    for part in (pool, *vars(pool).values()):
        if hasattr(part, "buffers"):
            part.device = torch.device("cuda:0")
    done: list[str] = []
    final = pool.get_cpu_copy if call == "offload" else pool.load_cpu_copy
    state_before = snapshot(pool)
    monkeypatch.setattr(
        torch.cuda, "synchronize", lambda device: done.append(snapshot_key(pool, device))
    )
    if call == "move":
        pool.move_kv_cache(ids(9), ids(4))
    elif call == "reload":
        final(copy, ids(8))
    else:
        final(ids(8))
    assert done
    assert done[-1] == snapshot_key(pool, torch.device("cuda:0"))
    assert same(snapshot(pool), state_before) == (call == "offload")


def snapshot_key(pool: KVPool, device: torch.device) -> str:
    """The device, and a digest of every row as it is now."""
    return f"{device} {[float(rows.double().pow(2).sum()) for rows in all_rows(pool)]}"


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_fp8_is_stored_as_bytes(dtype: torch.dtype) -> None:
    assert {rows.dtype for rows in all_rows(make("token", dtype=dtype))} == {torch.uint8}


def test_values_have_the_width_of_keys_where_none_is_given() -> None:
    pool = TokenPool(
        heads=7,
        head_dim=8,
        size=SIZE,
        page_size=PAGE,
        layers=3,
        dtype=torch.float16,
        device="cpu",
    )
    assert {tuple(rows.shape) for rows in all_rows(pool)} == {(SIZE + PAGE, 7, 8)}
