"""What every family of reference pools does: restore, move, and refuse."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pool_families import (
    FAMILIES,
    LOADED,
    SAVED,
    all_rows,
    copy_tokens,
    ids,
    make,
    randomize,
    read_all,
    same,
    snapshot,
    tensors_of,
)
from torch import Tensor

from conformance.geometry import geometries
from reference_pools import KVPool

each_family = pytest.mark.parametrize("family", FAMILIES)


@pytest.mark.parametrize("chunk", [1, 3, 8192])
@each_family
def test_tokens_are_restored_elsewhere_and_nothing_else_changes(family: str, chunk: int) -> None:
    pool = make(family, chunk_tokens=chunk)
    held = read_all(pool, SAVED)
    copy = pool.get_cpu_copy(SAVED)
    randomize(pool, seed=1)
    expected = copy_tokens(pool, held, LOADED)
    pool.load_cpu_copy(copy, LOADED)
    assert same(snapshot(pool), expected)
    randomize(pool, seed=2)
    expected = copy_tokens(pool, held, SAVED.flip(0))
    pool.load_cpu_copy(copy, SAVED.flip(0))
    assert same(snapshot(pool), expected)


@each_family
def test_offload_changes_nothing_and_shares_nothing(family: str) -> None:
    pool = make(family)
    before = snapshot(pool)
    copy = pool.get_cpu_copy(SAVED)
    owned = {rows.untyped_storage().data_ptr() for rows in all_rows(pool)}
    assert same(snapshot(pool), before)
    assert not owned & {t.untyped_storage().data_ptr() for t in tensors_of(copy)}


@each_family
def test_copy_holds_its_rows_and_little_more(family: str) -> None:
    pool = make(family)
    held = sum(t.nbytes for token in read_all(pool, SAVED) for ts in token.values() for t in ts)
    tensors = tensors_of(pool.get_cpu_copy(SAVED))
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    assert held <= sum(storages.values()) <= held + 16 * len(SAVED)
    assert {t.device.type for t in tensors} == {"cpu"}


@each_family
def test_rows_are_copied_a_chunk_at_a_time(family: str) -> None:
    rows = [t for t in tensors_of(make(family).get_cpu_copy(SAVED)) if t.dim() > 1]
    assert max(len(chunk) for chunk in rows) == 5


@each_family
def test_ids_in_any_form(family: str) -> None:
    pool = make(family)
    held = read_all(pool, SAVED)
    copy = pool.get_cpu_copy(torch.stack([SAVED.int(), SAVED.int()], dim=1)[:, 0])
    expected = copy_tokens(pool, held, LOADED)
    pool.load_cpu_copy(copy, torch.stack([LOADED.int(), LOADED.int()], dim=1)[:, 0])
    assert same(snapshot(pool), expected)


@each_family
def test_empty_set_changes_nothing(family: str) -> None:
    pool = make(family)
    before = snapshot(pool)
    pool.load_cpu_copy(pool.get_cpu_copy(ids()), ids())
    pool.move_kv_cache(ids(), ids())
    assert same(snapshot(pool), before)


@each_family
def test_move_copies_tokens_within_and_across_pages(family: str) -> None:
    pool = make(family)
    sources, targets = ids(5, 23, 9, 10), ids(20, 4, 8, 17)
    expected = copy_tokens(pool, read_all(pool, sources), targets)
    pool.move_kv_cache(targets, sources)
    assert same(snapshot(pool), expected)


ILLEGAL = [
    (ids(4, 24), IndexError, "contains 24, but the last row is 23"),
    (ids(4, -3), IndexError, "contains -3; ids are not negative"),
    (ids(4, 2), IndexError, "contains 2, but rows below 4 are reserved for padding"),
    (ids(9, 4, 9), ValueError, "contains 9 more than once"),
    (ids(4).float(), TypeError, "must be int32 or int64, got torch.float32"),
    (ids(4)[None], ValueError, "must have one dimension, got shape (1, 1)"),
    (torch.tensor(4), ValueError, "must have one dimension, got shape ()"),
]


@pytest.mark.parametrize(("bad", "error", "message"), ILLEGAL)
@each_family
def test_illegal_ids_are_named_and_nothing_changes(
    family: str, bad: Tensor, error: Any, message: str
) -> None:
    pool = make(family)
    fine = torch.arange(10, 10 + bad.numel())
    copy, before = pool.get_cpu_copy(fine), snapshot(pool)
    for name, call in {
        "indices ": lambda: pool.get_cpu_copy(bad),
        "indices": lambda: pool.load_cpu_copy(copy, bad),
        "tgt_loc": lambda: pool.move_kv_cache(bad, fine),
        "src_loc": lambda: pool.move_kv_cache(fine, bad),
    }.items():
        with pytest.raises(error) as caught:
            call()
        assert str(caught.value) == f"{name.strip()} {message}"
    assert same(snapshot(pool), before)


@pytest.mark.parametrize(
    ("targets", "sources", "message"),
    [
        (ids(4, 5), ids(6), "2 targets for 1 sources"),
        (ids(4, 5), ids(6, 4), "4 is both in tgt_loc and in src_loc"),
        (ids(4, 5), ids(5, 4).int(), "4 is both in tgt_loc and in src_loc"),
    ],
)
@each_family
def test_move_between_sets_that_do_not_fit_is_refused(
    family: str, targets: Tensor, sources: Tensor, message: str
) -> None:
    pool = make(family)
    before = snapshot(pool)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        pool.move_kv_cache(targets, sources)
    assert str(caught.value) == message
    assert same(snapshot(pool), before)


@each_family
def test_copy_that_does_not_fit_is_refused(family: str) -> None:
    pool = make(family)
    copy, other = pool.get_cpu_copy(SAVED), make(family, layers=4).get_cpu_copy(SAVED)
    before = snapshot(pool)
    with pytest.raises(ValueError, match="^copy holds 7 tokens, but 6 ids were given$"):
        pool.load_cpu_copy(copy, LOADED[:6])
    with pytest.raises(ValueError, match="^copy has layout .* this pool has "):
        pool.load_cpu_copy(other, LOADED)
    with pytest.raises(TypeError, match="^expected a HostCopy, got list$"):
        pool.load_cpu_copy([], LOADED)
    assert same(snapshot(pool), before)


@each_family
def test_state_ids_are_refused(family: str) -> None:
    pool = make(family)
    copy = pool.get_cpu_copy(SAVED)
    before = snapshot(pool)
    for call in (
        lambda: pool.get_cpu_copy(SAVED, mamba_indices=ids(1)),
        lambda: pool.load_cpu_copy(copy, LOADED, mamba_indices=ids(1)),
    ):
        with pytest.raises(ValueError, match="holds no state, but was given mamba_indices"):
            call()
    assert same(snapshot(pool), before)


@each_family
def test_every_declared_geometry_can_be_built(family: str) -> None:
    for geometry in geometries(FAMILIES[family]):
        assert FAMILIES[family].make(geometry).size == geometry.size


@pytest.mark.parametrize("call", ["get_cpu_copy", "load_cpu_copy", "move_kv_cache"])
@each_family
def test_every_verb_waits_after_its_last_transfer(
    family: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make(family)
    copy, before = pool.get_cpu_copy(SAVED), snapshot(pool)
    waited: list[list[Tensor]] = []
    monkeypatch.setattr("torch.cuda.synchronize", lambda _: waited.append(snapshot(pool)))
    for part in (pool, *vars(pool).values()):
        if isinstance(part, KVPool):
            part.device = torch.device("cuda:0")
    arguments = {"get_cpu_copy": (SAVED,), "load_cpu_copy": (copy, LOADED)}
    getattr(pool, call)(*arguments.get(call, (ids(4), ids(8))))
    assert same(waited[-1], snapshot(pool))
    assert same(snapshot(pool), before) == (call == "get_cpu_copy")
