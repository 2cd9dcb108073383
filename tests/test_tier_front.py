"""A host tier behind a pool: which steps it takes, and what it does when it is full."""

from __future__ import annotations

from typing import Any

import pytest
from broken_tiers import make
from tier_cases import HYBRID, IN_FLIGHT, LOADED, SAVED, TOKEN, Told, of, told, troubles
from torch import Tensor

from conformance import HostTier
from conformance.geometry import geometries
from conformance.troubles import Tally
from reference_pools.host import Backup, HostPool
from reference_pools.host import HostTier as Tier

FULL = "write r0 at 5..19; back up r0; write r9 at 20..29; back up r9"


def test_first_geometry_has_rows_5_to_29_and_a_host_of_20() -> None:
    pool = TOKEN.pool.make(geometries(TOKEN.pool)[0])
    assert (pool.page_size, pool.token_rows) == (5, 30)
    assert TOKEN.make(pool).available() == {"token": 20}


def test_tally_counts_what_was_loaded() -> None:
    text = (
        "write r0 at 10..14,5..9; back up r0; load r0 at 5..14; load r0 at 20..29; "
        "write r1 at 15..19; back up r1; load r1 at 15..19"
    )
    assert troubles(TOKEN, text) == ([], Tally(programs=1, reloads=3, rows=25))


def test_every_run_has_a_tier_of_its_own() -> None:
    made: list[Tier] = []

    def remembered(pool: Any) -> Tier:
        made.append(make(pool))
        return made[-1]

    for _ in range(2):
        assert told(HostTier("t", remembered, TOKEN.pool), "write r0 at 5..24; back up r0") == []
    assert len({id(tier.device_pool) for tier in made}) == 2


# -- programs that were typed wrong --------------------------------------------------------

WHOLE = "a host tier copies whole pages of 5 rows"
WRONG: list[tuple[str, str, str]] = [
    ("", "back up r0", "names 'r0', which is not there then"),
    ("", "load r0 at 5..9", "names 'r0', which is not there then"),
    ("", "drop r0", "names 'r0', which is not there then"),
    ("", "refuse drop r0", "names 'r0', which is not there then"),
    ("", "read r0", "names 'r0', which is not there then"),
    ("write r0 at 5..9", "await backup of r0", "names 'r0', which is not there then"),
    ("write r0 at 5..9", "poll backup of r0", "names 'r0', which is not there then"),
    ("write r0 at 5..9", "load r0 at 5..9", "names 'r0', which is not there then"),
    (SAVED, "use r0", "names 'r0', which is not there then"),
    (SAVED, "await load of r0", "names 'r0', which is not there then"),
    (SAVED, "poll load of r0", "names 'r0', which is not there then"),
    (f"{SAVED}; drop r0", "load r0 at 10..14", "names 'r0', which is not there then"),
    ("write r0 at 5..8", "back up r0", WHOLE),
    ("write r0 at 5..11", "back up r0", WHOLE),
    ("write r0 at 6..10", "back up r0", WHOLE),
    ("write r0 at 5..8,10", "back up r0", WHOLE),
    ("write r0 at 9,8,7,6,5", "back up r0", WHOLE),
    ("write r0 at none", "back up r0", WHOLE),
    ("write r0 at 5..14; claim r1 at 7..11", "back up r1", WHOLE),
    ("write r0 at 5..9; back up r0", "back up r0", "it is backed up already; drop it first"),
    (SAVED, "back up r0", "it is backed up already; drop it first"),
    (SAVED, "load r0 at 5..14", "its backup has 5 tokens and no state"),
    (SAVED, "load r0 at none", "its backup has 5 tokens and no state"),
    (SAVED, "load r0 at 10..14 state 1", "its backup has 5 tokens and no state"),
    (
        SAVED.replace("5..9", "5..9 state 3"),
        "load r0 at 10..14",
        "its backup has 5 tokens and a state",
    ),
]


@pytest.mark.parametrize(("before", "step", "message"), WRONG)
def test_step_that_cannot_be_is_named(before: str, step: str, message: str) -> None:
    with pytest.raises(LookupError) as caught:
        told(HYBRID, f"{before}; {step}")
    colon = "" if message.startswith("names") else ":"
    assert str(caught.value) == f"program: {step!r}{colon} {message}"


@pytest.mark.parametrize(
    ("before", "step", "way"),
    [
        (IN_FLIGHT, "write r1 at 5..9", "backup"),
        (IN_FLIGHT, "write r1 at 9", "backup"),
        (IN_FLIGHT, "write r0 at 5..9", "backup"),
        (LOADED, "write r1 at 10..14", "load"),
        (LOADED, "write r0 at 5..14", "load"),
        (LOADED, "read r0", "load"),
        (f"{LOADED}; claim r1 at 10..14", "read r1", "load"),
        (IN_FLIGHT.replace("5..9", "5..9 state 3"), "write r1 at 10..14 state 3", "backup"),
    ],
)
def test_rows_of_a_copy_in_flight_are_not_used(before: str, step: str, way: str) -> None:
    with pytest.raises(LookupError) as caught:
        told(HYBRID, f"{before}; {step}")
    assert str(caught.value) == (
        f"program: {step!r}: it uses rows of the {way} of r0, which is in flight; "
        f"`await {way} of r0` first"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"{IN_FLIGHT}; read r0",
        f"{IN_FLIGHT}; write r1 at 10..14; read r1",
        f"{IN_FLIGHT}; load r0 at 5..9; await backup of r0; await load of r0; read r0",
        f"{IN_FLIGHT}; claim r1 at 5..9; back up r1",
        f"{SAVED}; write r1 at 5..9; read r1",
        f"{LOADED}; await load of r0; write r1 at 10..14; read r1",
        f"{LOADED}; use r0; read r0; write r1 at 10..14; read r1",
        f"{LOADED}; write r1 at 5..9; read r1",
    ],
)
def test_rows_may_be_used_once_somebody_has_waited_or_nothing_writes_them(text: str) -> None:
    assert told(HYBRID, text) == []


@pytest.mark.parametrize(
    "step",
    [
        "offload r0 as c0",
        "reload c0 at 5",
        "retract r0 as c0",
        "resume r0 from c0",
        "extend r0 by 5",
        "extend r0 at 10..14",
        "share r0[:5] as r1",
        "slide r0[0:5]",
        "free r0",
        "move r0[1] to [0]",
        "copy state 1 to 2",
        "zero state 1",
        "clear",
        "compact",
        "begin group",
        "overwrite ids",
        "refuse offload r0 as c0",
        "refuse free r0",
    ],
)
def test_step_of_no_host_tier_is_named(step: str) -> None:
    with pytest.raises(ValueError, match="^program: ") as caught:
        told(TOKEN, f"write r0 at 5..9; {step}")
    assert str(caught.value) == f"program: {step!r} is no step of a host tier"


def test_everything_is_overwritten_only_while_nothing_is_in_flight() -> None:
    text = f"{SAVED}; overwrite; load r0 at 10..14; {{}}overwrite"
    assert told(TOKEN, text.format("await load of r0; ")) == []
    for before in ("", "use r0; "):
        with pytest.raises(LookupError, match="^program: 'overwrite': the load of r0 is in fl"):
            told(TOKEN, text.format(before))


@pytest.mark.parametrize("before", [SAVED, IN_FLIGHT, LOADED, f"{LOADED}; use r0", ""])
def test_tier_may_go_away_whatever_is_in_flight(before: str) -> None:
    assert told(TOKEN, f"{before}; close") == []


@pytest.mark.parametrize("step", ["write r1 at 5..9", "await backup of r0", "close", "drop r0"])
def test_nothing_comes_after_the_tier_has_gone(step: str) -> None:
    with pytest.raises(LookupError) as caught:
        told(TOKEN, f"{SAVED}; close; {step}")
    assert str(caught.value) == f"program: {step!r} comes after 'close'"


# -- a full host ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        "await backup of r9",
        "poll backup of r9",
        "load r9 at 20..29",
        "use r9",
        "await load of r9",
        "poll load of r9",
        "read r9",
        "drop r9",
        "refuse drop r9",
    ],
)
def test_step_of_a_request_without_room_does_nothing(step: str) -> None:
    after = "await backup of r0; drop r0; write r1 at 20..29,5..14; back up r1; load r1 at 10..29"
    expected = [], Tally(programs=1, reloads=1, rows=20)
    assert troubles(TOKEN, f"{FULL}; {step}; {after}") == expected


def test_rows_of_a_request_without_room_may_be_written_at_once() -> None:
    assert told(TOKEN, f"{FULL}; write r1 at 20..29; read r1") == []


def test_host_may_be_full_of_states() -> None:
    def make_tight(pool: Any) -> Tier:
        memory = HostPool(pool, pages=4, states=1)
        return Tier(pool, memory, memory.allocator())

    text = (
        "write r0 at 5..9 state 1; back up r0; write r1 at 10..14 state 2; back up r1; "
        "load r1 at 20..24 state 3; write r2 at 15..19; back up r2; load r2 at 25..29"
    )
    tight = HostTier("t", make_tight, HYBRID.pool)
    assert troubles(tight, text) == ([], Tally(programs=1, reloads=1, rows=5))
    assert troubles(HYBRID, text) == ([], Tally(programs=1, reloads=2, rows=10))


class RaisesWhenFull(Tier):
    def backup(self, device_ids: Tensor, state_id: Tensor | None = None) -> Backup | None:
        if (done := super().backup(device_ids, state_id)) is None:
            raise MemoryError("the host is full")
        return done


class LiesWhenFull(Tier):
    """Backs up the first page."""

    def backup(self, device_ids: Tensor, state_id: Tensor | None = None) -> Backup | None:
        page = self.host_pool.page_size
        return super().backup(device_ids, state_id) or super().backup(device_ids[:page], state_id)


class LeaksWhenFull(Tier):
    """Takes a page before it sees that the others are not there."""

    def backup(self, device_ids: Tensor, state_id: Tensor | None = None) -> Backup | None:
        if (done := super().backup(device_ids, state_id)) is None:
            self.rows.take(1, None)
        return done


class HasLessRoom(Tier):
    def backup(self, device_ids: Tensor, state_id: Tensor | None = None) -> Backup | None:
        return super().backup(device_ids, state_id) if len(device_ids) < 10 else None


class RaisesForNothing(Tier):
    def backup(self, device_ids: Tensor, state_id: Tensor | None = None) -> Backup | None:
        raise MemoryError("no pages")


class TakesOneMore(Tier):
    def backup(self, device_ids: Tensor, state_id: Tensor | None = None) -> Backup | None:
        self.rows.take(1, None)
        return super().backup(device_ids, state_id)


@pytest.mark.parametrize(
    ("cls", "found"),
    [
        (Tier, []),
        (RaisesWhenFull, []),
        (
            LiesWhenFull,
            [
                (
                    3,
                    "full_host_changes_nothing",
                    "a backup of 10 tokens; 5 host rows are free (token)",
                )
            ],
        ),
        (
            LeaksWhenFull,
            [(3, "host_rows_are_conserved", "0 host rows are free (token), expected 5")],
        ),
        (
            HasLessRoom,
            [
                (
                    1,
                    "host_rows_are_conserved",
                    "no backup of 15 tokens; 20 host rows are free (token)",
                )
            ],
        ),
        (
            TakesOneMore,
            [(1, "host_rows_are_conserved", "0 host rows are free (token), expected 5")],
        ),
    ],
)
def test_fault_of_a_full_host_is_told_by_its_clause(cls: type[Tier], found: Told) -> None:
    assert told(of(cls), FULL) == found


def test_backup_that_raises_where_there_is_room_is_told() -> None:
    ((at, kind, what),) = told(of(RaisesForNothing), FULL)
    assert (at, kind) == (1, "raised")
    assert what.startswith("raised MemoryError: no pages (test_tier_front.py:")
