"""State rows of the hybrid reference pools: copied, zeroed, and beside sparse attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pool_families import all_rows, ids, randomize, same, snapshot
from torch import Tensor

from conformance import Pool
from conformance.geometry import geometries
from reference_pools.declarations import kv_pools, make_hybrid

HYBRIDS = {
    pool.name: pool for pool in kv_pools() if isinstance(pool, Pool) and pool.kind == "hybrid"
}

each_hybrid = pytest.mark.parametrize("name", HYBRIDS)


def make(name: str) -> Any:
    pool = make_hybrid(geometries(HYBRIDS[name])[0])
    randomize(pool, seed=0)
    return pool


def state_rows(pool: Any) -> list[Tensor]:
    return [rows for layers in pool.state.buffers().values() for rows in layers]


@pytest.mark.parametrize("form", [torch.Tensor.long, torch.Tensor.int])
@each_hybrid
def test_state_is_copied_in_every_buffer_and_layer(name: str, form: Any) -> None:
    pool = make(name)
    tokens = len(all_rows(pool)) - len(state_rows(pool))
    expected = snapshot(pool)
    for rows in expected[tokens:]:
        rows[ids(7, 1)] = rows[ids(2, 11)]
    pool.copy_state(form(ids(2, 11)), form(ids(7, 1)))
    assert len(state_rows(pool)) == 8
    assert same(snapshot(pool), expected)


@each_hybrid
def test_state_is_zeroed_in_every_buffer_and_layer(name: str) -> None:
    pool = make(name)
    for rows in state_rows(pool):
        rows.fill_(float("nan"))
    before = snapshot(pool)
    pool.zero_state(ids(11, 3))
    for rows in state_rows(pool):
        bytes_of = rows.flatten(1).view(torch.uint8)
        assert not bool(bytes_of[ids(11, 3)].any())
        assert bool(rows[ids(0, 1, 2, 4, 5, 6, 7, 8, 9, 10)].isnan().all())
    assert same(snapshot(pool)[:-8], before[:-8])


def test_one_state_id_may_have_no_dimension() -> None:
    pool = make("hybrid")
    expected = [rows.clone() for rows in state_rows(pool)]
    for rows in expected:
        rows[7], rows[3] = rows[2].clone(), 0
    pool.copy_state(torch.tensor(2), torch.tensor(7))
    pool.zero_state(torch.tensor(3))
    assert same(state_rows(pool), expected)


@pytest.mark.parametrize(
    ("sources", "targets", "error", "message"),
    [
        (ids(1, 3), ids(5), ValueError, "1 targets for 2 sources"),
        (ids(1, 3), ids(5, 1), ValueError, "1 is both in targets and in sources"),
        (ids(1, 1), ids(5, 6), ValueError, "sources contains 1 more than once"),
        (ids(1, 3), ids(5, 5), ValueError, "targets contains 5 more than once"),
        (ids(0), ids(5), IndexError, "sources contains 0, but rows below 1 are reserved"),
        (ids(1), ids(12), IndexError, "targets contains 12, but the last row is 11"),
        (ids(1).float(), ids(5), TypeError, "sources must be int32 or int64"),
        (1, ids(5), TypeError, "sources must be a tensor of ids, got int"),
    ],
)
@each_hybrid
def test_illegal_copy_of_state_changes_nothing(
    name: str, sources: Any, targets: Any, error: Any, message: str
) -> None:
    pool = make(name)
    before = snapshot(pool)
    with pytest.raises(error, match=f"^{message}"):
        pool.copy_state(sources, targets)
    assert same(snapshot(pool), before)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (ids(3, 3), ValueError, "ids contains 3 more than once"),
        (ids(3, 0), IndexError, "ids contains 0, but rows below 1 are reserved"),
        (ids(3, -1), IndexError, "ids contains -1; ids are not negative"),
        (ids(3, 12), IndexError, "ids contains 12, but the last row is 11"),
    ],
)
@each_hybrid
def test_illegal_zeroing_of_state_changes_nothing(
    name: str, rows: Tensor, error: Any, message: str
) -> None:
    pool = make(name)
    before = snapshot(pool)
    with pytest.raises(error, match=f"^{message}"):
        pool.zero_state(rows)
    assert same(snapshot(pool), before)


@each_hybrid
def test_state_id_given_twice_is_named_before_anything_moves(name: str) -> None:
    pool = make(name)
    copy = pool.get_cpu_copy(ids(5, 6), mamba_indices=ids(1, 3))
    before = snapshot(pool)
    message = "^mamba_indices contains 3 more than once$"
    with pytest.raises(ValueError, match=message):
        pool.get_cpu_copy(ids(5, 6), mamba_indices=ids(3, 3))
    with pytest.raises(ValueError, match=message):
        pool.load_cpu_copy(copy, ids(10, 11), mamba_indices=ids(3, 3))
    assert same(snapshot(pool), before)


@pytest.mark.parametrize("call", ["copy_state", "zero_state"])
def test_state_verbs_wait_after_their_last_write(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make("hybrid")
    waited: list[list[Tensor]] = []
    monkeypatch.setattr("torch.cuda.synchronize", lambda _: waited.append(snapshot(pool)))
    pool.state.device = torch.device("cuda:0")
    getattr(pool, call)(*[ids(1), ids(5)][: 2 if call == "copy_state" else 1])
    assert same(waited[-1], snapshot(pool))


def test_latents_index_keys_and_state_travel_together() -> None:
    pool = make("hybrid-dsa")
    page = pool.page_size
    assert list(pool.buffers()) == ["latent", "index_k", "conv", "temporal"]
    saved, loaded = torch.arange(page, 3 * page), torch.arange(3 * page, 5 * page)
    copy = pool.get_cpu_copy(saved, mamba_indices=ids(2))
    before = snapshot(pool)
    randomize(pool, seed=1)
    expected = snapshot(pool)
    rows = [(loaded, saved)] * 3 + [(ids(3, 4), ids(1, 2))] * 3 + [(ids(9), ids(2))] * 8
    for now, was, (to, of) in zip(expected, before, rows, strict=True):
        now[to] = was[of]
    pool.load_cpu_copy(copy, loaded, mamba_indices=ids(9))
    assert same(snapshot(pool), expected)


def test_sparse_attention_refuses_before_state_is_loaded() -> None:
    pool = make("hybrid-dsa")
    copy = pool.get_cpu_copy(ids(6, 7), mamba_indices=ids(2))
    before = snapshot(pool)
    with pytest.raises(ValueError, match="^copy begins at slot 1 of a page, indices at slot 3$"):
        pool.load_cpu_copy(copy, ids(13, 14), mamba_indices=ids(9))
    assert same(snapshot(pool), before)
