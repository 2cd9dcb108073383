"""The host tier by example, on the CPU, where a copy is complete when its call returns."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from host_tiers import (
    HYBRIDS,
    KINDS,
    LAYOUTS,
    PAGE,
    host_snapshot,
    ids,
    make_tier,
    moved,
    pages,
    same,
    scramble,
    snapshot,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from reference_pools.host import Backup, HostIds, HostTier, Layout

each_layout = pytest.mark.parametrize("layout", LAYOUTS)
each_kind = pytest.mark.parametrize("kind", KINDS + HYBRIDS)


def backed_up(tier: HostTier, tokens: Tensor, state: Tensor | None = None) -> Backup:
    backup = tier.backup(tokens, state)
    assert backup is not None
    backup.wait()
    return backup


def state_of(kind: str, *values: int) -> Tensor | None:
    return ids(*values) if kind in HYBRIDS else None


def books(tier: HostTier) -> tuple[Any, ...]:
    """All that the tier knows of host rows, and the bytes on both sides."""
    lists = [tier.rows.tokens.free_list]
    lists += [tier.rows.states.free_list] if tier.rows.states else []
    owners = [(part.owners.tolist(), list(part.free_pages)) for part in lists]
    device = [rows for layers in snapshot(tier.device_pool).values() for rows in layers]
    memory = [*host_snapshot(tier), *device]
    return owners, [rows.view(torch.uint8).flatten().tolist() for rows in memory]


# -- round trips ----------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 9, 8192])
@each_layout
@each_kind
def test_round_trip_into_other_rows(kind: str, layout: Layout, chunk: int) -> None:
    tier = make_tier(kind, layout=layout, chunk_tokens=chunk)
    saved = pages(7, 2, 4, tokens=10), state_of(kind, 3)
    loaded = pages(9, 3, 1, tokens=10), state_of(kind, 8)
    before = snapshot(tier.device_pool)
    backup = backed_up(tier, *saved)
    assert same(snapshot(tier.device_pool), before)
    scramble(tier.device_pool, seed=1)
    after = snapshot(tier.device_pool)
    load = tier.load(backup, *loaded)
    load.wait()
    assert same(snapshot(tier.device_pool), moved(after, before, saved, loaded))


@each_layout
@each_kind
def test_round_trip_of_single_rows(kind: str, layout: Layout) -> None:
    tier = make_tier(kind, layout=layout, page_size=1)
    saved, loaded = (ids(5, 2, 9), state_of(kind, 3)), (ids(1, 7, 2), state_of(kind, 8))
    before = snapshot(tier.device_pool)
    backup = backed_up(tier, *saved)
    scramble(tier.device_pool, seed=1)
    after = snapshot(tier.device_pool)
    tier.load(backup, *loaded)
    assert same(snapshot(tier.device_pool), moved(after, before, saved, loaded, page_size=1))


@pytest.mark.parametrize("tokens", range(9))
@pytest.mark.parametrize("kind", ["token", "dsa"])
def test_partial_pages(kind: str, tokens: int) -> None:
    tier = make_tier(kind)
    saved, loaded = pages(7, 2, tokens=tokens), pages(3, 8, tokens=tokens)
    before = snapshot(tier.device_pool)
    backup = backed_up(tier, saved)
    assert (backup.tokens, len(backup.host_ids)) == (tokens, -(-tokens // PAGE) * PAGE)
    scramble(tier.device_pool, seed=1)
    after = snapshot(tier.device_pool)
    tier.load(backup, loaded)
    expected = moved(after, before, (saved, None), (loaded, None))
    assert same(snapshot(tier.device_pool), expected)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_host_ids_can_be_loaded_by_pages_and_again(dtype: torch.dtype) -> None:
    tier = make_tier("dsa")
    before = snapshot(tier.device_pool)
    host = backed_up(tier, pages(7, 2, 4).to(dtype)).host_ids
    scramble(tier.device_pool, seed=1)
    for source, target in (((7,), (3,)), ((2, 4), (5, 6)), ((7, 2, 4), (8, 1, 9))):
        after = snapshot(tier.device_pool)
        begin = {7: 0, 2: PAGE}[source[0]]
        rows = host[begin : begin + PAGE * len(source)]
        tier.load(rows.to(dtype), pages(*target).to(dtype))
        saved, loaded = (pages(*source), None), (pages(*target), None)
        assert same(snapshot(tier.device_pool), moved(after, before, saved, loaded))


def test_host_ids_of_tokens_and_states_can_be_loaded() -> None:
    tier = make_tier("hybrid")
    before = snapshot(tier.device_pool)
    backup = backed_up(tier, pages(7), torch.tensor(5))
    scramble(tier.device_pool, seed=1)
    after = snapshot(tier.device_pool)
    tier.load(HostIds(backup.host.tokens, backup.host.states), pages(2), ids(6))
    saved, loaded = (pages(7), ids(5)), (pages(2), ids(6))
    assert same(snapshot(tier.device_pool), moved(after, before, saved, loaded))


@pytest.mark.parametrize("kind", HYBRIDS)
def test_no_state_ids_leave_states_alone(kind: str) -> None:
    tier = make_tier(kind)
    before = snapshot(tier.device_pool)
    backup = backed_up(tier, pages(7, 2))
    assert backup.host.states is None
    scramble(tier.device_pool, seed=1)
    after = snapshot(tier.device_pool)
    tier.load(backup, pages(4, 3))
    saved, loaded = (pages(7, 2), None), (pages(4, 3), None)
    assert same(snapshot(tier.device_pool), moved(after, before, saved, loaded))


def test_several_requests_overlap() -> None:
    tier = make_tier("hybrid-dsa", pages=9)
    before = snapshot(tier.device_pool)
    first = tier.backup(pages(7, 2, tokens=6), ids(3))
    second = tier.backup(pages(4, 9, 1), ids(5))
    assert first is not None
    assert second is not None
    for backup in (second, first):
        backup.wait()
    scramble(tier.device_pool, seed=1)
    after = snapshot(tier.device_pool)
    loads = [tier.load(second, pages(7, 3, 8), ids(1)), tier.load(first, pages(6, 5)[:6], ids(2))]
    third = tier.backup(pages(4), ids(9))
    assert third is not None
    for load in loads:
        load.wait()
    expected = moved(after, before, (pages(4, 9, 1), ids(5)), (pages(7, 3, 8), ids(1)))
    expected = moved(expected, before, (pages(7, 2, tokens=6), ids(3)), (pages(6, 5)[:6], ids(2)))
    assert same(snapshot(tier.device_pool), expected)
    rows = [row for b in (first, second, third) for row in b.host_ids.tolist()]
    assert len(set(rows)) == len(rows) == 24


# -- host rows ------------------------------------------------------------------------


@each_kind
def test_full_host_changes_nothing(kind: str) -> None:
    tier = make_tier(kind, pages=3)
    backed_up(tier, pages(7, 2), state_of(kind, 3))
    before = books(tier)
    assert tier.backup(pages(4, 9, tokens=5), state_of(kind, 5)) is None
    assert books(tier) == before
    assert tier.backup(pages(4), state_of(kind, 5)) is not None


def test_no_room_for_the_state_takes_no_tokens_either() -> None:
    tier = make_tier("hybrid", states=1)
    backup = backed_up(tier, pages(7), ids(3))
    before = books(tier)
    assert tier.backup(pages(4), ids(5)) is None
    assert books(tier) == before
    tier.free(backup)
    assert tier.backup(pages(4), ids(5)) is not None


def test_freed_rows_are_used_again() -> None:
    tier = make_tier("hybrid", pages=3)
    before = tier.rows.tokens.available(), tier.rows.states.available()
    for page in (1, 5, 9, 2):
        backup = backed_up(tier, pages(page, 7, 4), ids(page))
        tier.load(backup, pages(6, 3, 8), ids(4)).wait()
        tier.free(backup)
    after = tier.rows.tokens.available(), tier.rows.states.available()
    assert after == before
    assert not tier._transfers


@pytest.mark.parametrize("given", ["backup", "host", "tokens"])
def test_double_free_is_refused(given: str) -> None:
    tier = make_tier("hybrid")
    backup = backed_up(tier, pages(7, 2), ids(3))
    source = {"backup": backup, "host": backup.host, "tokens": backup.host_ids}[given]
    tier.free(source)
    before = books(tier)
    for again in (source, backup.host_ids[PAGE:]):
        with pytest.raises(ValueError, match=r"^host_ids contains \d, which is not in use"):
            tier.free(again)
        with pytest.raises(ValueError, match=r"^host_ids contains \d, which is not in use"):
            tier.load(again, pages(3, 4), ids(1))
    assert books(tier) == before


def test_state_that_was_freed_keeps_the_tokens() -> None:
    tier = make_tier("hybrid")
    backup = backed_up(tier, pages(7), ids(3))
    tier.free(HostIds(ids(), backup.host.states))
    before = books(tier)
    with pytest.raises(ValueError, match="^host states contains 0, which is not in use"):
        tier.free(backup)
    assert books(tier) == before
    tier.free(backup.host_ids)


# -- refusals -------------------------------------------------------------------------

DEVICE_IDS: list[tuple[Any, Any, str]] = [
    (ids(4, 40), IndexError, "device_ids contains 40, but the last row is 39"),
    (ids(4, -3), IndexError, "device_ids contains -3; ids are not negative"),
    (ids(2, 4), IndexError, "device_ids contains 2, but rows below 4 are reserved for padding"),
    (ids(8, 9, 9), ValueError, "device_ids contains 9 more than once"),
    ([4, 5], TypeError, "device_ids must be a tensor of ids, got list"),
    (ids(4).float(), TypeError, "device_ids must be int32 or int64, got torch.float32"),
    (ids(4)[None], ValueError, "device_ids must have one dimension, got shape (1, 1)"),
    (
        ids(5, 6),
        ValueError,
        "device_ids contains 5 where a page begins; pages of 4 rows begin at their multiples",
    ),
    (
        ids(4, 5, 7),
        ValueError,
        "device_ids contains 7 after 5, which does not follow in a page of 4 rows",
    ),
    (
        ids(8, 9, 10, 11, 14),
        ValueError,
        "device_ids contains 14 where a page begins; pages of 4 rows begin at their multiples",
    ),
]


@pytest.mark.parametrize(("device_ids", "error", "message"), DEVICE_IDS)
@pytest.mark.parametrize("kind", ["token", "dsa", "hybrid"])
def test_illegal_device_ids_are_named(kind: str, device_ids: Any, error: Any, message: str) -> None:
    tier = make_tier(kind)
    host = backed_up(tier, pages(7)).host_ids
    before = books(tier)
    for call in (tier.backup, lambda given: tier.load(host, given)):
        with pytest.raises(error) as caught:
            call(device_ids)
        assert str(caught.value) == message
    assert books(tier) == before


@pytest.mark.parametrize(
    ("kind", "state", "error", "message"),
    [
        ("token", ids(1), ValueError, "this pool holds no state, but was given state_id"),
        ("hybrid", ids(0), IndexError, "state_id contains 0, but rows below 1 are reserved"),
        ("hybrid", torch.tensor(12), IndexError, "state_id contains 12, but the last row is 11"),
        ("hybrid", 3, TypeError, "state_id must be a tensor of ids, got int"),
    ],
)
def test_illegal_state_ids_are_named(kind: str, state: Any, error: Any, message: str) -> None:
    tier = make_tier(kind)
    host = backed_up(tier, pages(7)).host
    before = books(tier)
    for call in (tier.backup, lambda *given: tier.load(host, *given)):
        with pytest.raises(error, match=f"^{message}"):
            call(pages(3), state)
    assert books(tier) == before


@pytest.mark.parametrize(
    ("host", "error", "message"),
    [
        (ids(0, 1, 2, 3, 4), ValueError, "host_ids ends with 4, inside a page of 4 rows"),
        (ids(1, 2, 3, 4), ValueError, "host_ids contains 1 where a page begins"),
        (ids(0, 1, 3, 2), ValueError, "host_ids contains 3 after 1"),
        (pages(2), ValueError, "host_ids contains 8, which is not in use"),
        (pages(5), IndexError, "host_ids contains 23, but the last row is 19"),
        ([0, 1, 2, 3], TypeError, "host_ids must be a tensor of ids, got list"),
        (HostIds(pages(0), ids(0)), ValueError, "the host holds no state, but was given"),
    ],
)
def test_illegal_host_ids_are_named(host: Any, error: Any, message: str) -> None:
    tier = make_tier("token")
    backed_up(tier, pages(7, 3))
    before = books(tier)
    for call in (tier.free, lambda given: tier.load(given, pages(5))):
        with pytest.raises(error, match=f"^{message}"):
            call(host)
    assert books(tier) == before


@pytest.mark.parametrize(
    ("whole", "device_ids", "state", "message"),
    [
        (True, pages(5, tokens=2), ids(1), "the backup holds 3 tokens, but 2 ids were given"),
        (True, pages(5, 6), ids(1), "the backup holds 3 tokens, but 8 ids were given"),
        (False, pages(5, 6), None, "4 host ids are 1 pages, but 8 device ids are 2"),
        (False, ids(), None, "4 host ids are 1 pages, but 0 device ids are 0"),
        (True, pages(5, tokens=3), None, "1 host states, but 0 state ids were given"),
        (True, pages(5, tokens=3), ids(1, 4), "1 host states, but 2 state ids were given"),
        (False, pages(5), ids(1), "0 host states, but 1 state ids were given"),
    ],
)
def test_load_that_does_not_fit_changes_nothing(
    whole: bool, device_ids: Tensor, state: Any, message: str
) -> None:
    tier = make_tier("hybrid")
    backup = backed_up(tier, pages(7, tokens=3), ids(2))
    before = books(tier)
    with pytest.raises(ValueError, match=f"^{message}$"):
        tier.load(backup if whole else backup.host_ids, device_ids, state)
    assert books(tier) == before


# -- lives ----------------------------------------------------------------------------

steps = st.lists(
    st.tuples(
        st.sampled_from(["backup", "load", "free"]),
        st.permutations([1, 4, 6, 9]).map(lambda numbers: numbers[:3]),
        st.integers(0, 3 * PAGE),
    ),
    min_size=4,
    max_size=14,
)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["token", "dsa", "fp4", "hybrid"]), st.sampled_from(LAYOUTS), steps)
def test_every_life_agrees_with_plain_copies(kind: str, layout: Layout, steps: Any) -> None:
    tier = make_tier(kind, layout=layout, pages=4, states=3 if kind == "hybrid" else None)
    held: list[tuple[Backup, Any, Any]] = []
    for seed, (verb, numbers, tokens) in enumerate(steps):
        now = snapshot(tier.device_pool)
        state = state_of(kind, numbers[0])
        if verb == "backup":
            rows = pages(*numbers, tokens=tokens)
            room = -(-tokens // PAGE) * PAGE <= tier.rows.tokens.available()
            backup = tier.backup(rows, state)
            assert (backup is not None) == (room and (kind != "hybrid" or len(held) < 3))
            held += [(backup, now, (rows, state))] if backup else []
            scramble(tier.device_pool, seed)
        elif held and verb == "load":
            backup, was, saved = held[tokens % len(held)]
            loaded = pages(*numbers, tokens=backup.tokens), state
            tier.load(backup, *loaded)
            assert same(snapshot(tier.device_pool), moved(now, was, saved, loaded))
        elif held:
            tier.free(held.pop(tokens % len(held))[0])
    used = sum(len(backup.host_ids) for backup, _, _ in held)
    assert tier.rows.tokens.available() == 4 * PAGE - used
