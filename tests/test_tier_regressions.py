"""What was once wrong about host tiers, each with the smallest case that showed it."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any

import pytest
import torch
from drawn_programs import POOLS, TIERS, seeded
from test_tier_timing import DSA as DSA_ON_SIM
from test_tier_timing import ForgetsTheTask, accused
from tier_cases import SAVED, TOKEN, Tier, of, told, troubles

from conformance import HostTier, Known, Pool, scenarios, simdevice
from conformance.case import Case
from conformance.contract import find_clause
from conformance.geometry import geometries
from conformance.programs import parse_program
from conformance.runner import run
from conformance.tiers.claims import check_row_widths
from conformance.tiers.plainer import plainer
from conformance.timing import prepare
from conformance.violation import Violation
from reference_pools.declarations import make_host_tier, make_hybrid
from reference_pools.host.lanes import Stages
from reference_pools.host.rows import check_idle
from reference_pools.host.tier import _host_ids


@pytest.fixture(scope="module", autouse=True)
def _device() -> None:
    prepare()


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (f"{SAVED}; load r0 at 11..15", "a host tier copies whole pages of 5 rows"),
        (f"{SAVED}; load r0 at 30..34", "the pages begin at 5..25"),
        (f"{SAVED}; load r0 at 0..4", "the pages begin at 5..25"),
        ("write r0 at 0..4; back up r0", "the pages begin at 5..25"),
        ("claim r1 at 5..9,5..9; back up r1", "the page at 5 is there twice"),
        ("write r0 at 5..9 state 1; back up r0", "this host tier carries no state"),
    ],
)
def test_program_that_was_typed_wrong_accuses_nobody(steps: str, message: str) -> None:
    with pytest.raises(LookupError, match=f"^program: .*{message}"):
        told(TOKEN, steps)


@pytest.mark.parametrize("step", ["write r0 at 5..9 state 12", "write r0 at 5..9 state 0"])
def test_state_that_is_not_there_is_a_wrong_program(step: str) -> None:
    with pytest.raises(LookupError, match=r"the states are 1\.\.11$"):
        told(TIERS["hybrid-host"], step)


class Crashes(Tier):
    def load(self, *_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGSEGV)


def test_crash_is_blamed_on_a_clause_of_host_tiers() -> None:
    tier = of(Crashes, isolated=True)
    case = Case(tier.pool, find_clause("host_tier_verbs_work"), "cpu", "strict", 1, front=tier)
    with pytest.raises(Violation, match="killed by SIGSEGV") as caught:
        case.run(*case.read(f"{SAVED}; load r0 at 10..14"))
    assert caught.value.clause == "host_tier_verbs_work"


@pytest.mark.parametrize("states", [1, 4])
def test_pools_of_few_states_are_given_legal_programs(states: int) -> None:
    pool = Pool("h", make_hybrid, kind="hybrid", state_sizes=[states])
    tier = HostTier("t", make_host_tier, pool)
    for scenario in scenarios.TIERS:
        for seed in range(25):
            found: list[Any] = []
            run(pool, *seeded(tier, scenario, seed), found.append, tier)
            assert found == []


def test_program_is_not_told_in_a_geometry_with_too_few_states() -> None:
    pool = Pool("h", make_hybrid, kind="hybrid", state_sizes=[5, 11])
    large = next(g for g in geometries(pool) if g.state_size == 11)
    text = "; ".join(f"write r{number} at 5..9 state {number}" for number in range(1, 7))
    told_in = [
        geometry.state_size for geometry, _ in plainer(pool, large, parse_program(text).steps)
    ]
    assert set(told_in) <= {11}


class Fails(Tier):
    """What `available` says after the first time."""

    asked = 0

    def available(self) -> dict[str, int]:
        self.asked += 1
        return super().available() if self.asked < 2 else self.later()

    def later(self) -> dict[str, int]:
        raise KeyError("free_slots")


class SaysNothing(Fails):
    def later(self) -> dict[str, int]:
        return {}


def test_error_of_available_is_the_tiers() -> None:
    ((at, kind, what),) = told(of(Fails), "write r0 at 5..9; back up r0")
    assert (at, kind) == (1, "raised")
    assert what.startswith("raised KeyError: 'free_slots' (")


def test_available_that_names_no_rows_is_told() -> None:
    ((_, clause, what),) = told(of(SaysNothing), "write r0 at 5..9; back up r0")
    assert clause == "host_rows_are_conserved"
    assert what == "None host rows are free (token), expected 15"


class HasNone(Tier):
    def available(self) -> dict[str, int]:
        return {}


def test_new_tier_must_have_rows() -> None:
    with pytest.raises(ValueError, match=r"^HostTier 't': available\(\) of a new tier must be"):
        told(of(HasNone), "write r0 at 5..9")


def test_request_is_backed_up_once_there_is_room_again() -> None:
    text = (
        "write r0 at 5..19; back up r0; await backup of r0; write r1 at 20..29; back up r1; "
        "drop r0; back up r1; load r1 at 5..14; await load of r1"
    )
    found, tally = troubles(TOKEN, text)
    assert (found, tally.rows) == ([], 10)


class OutOfRange(Tier):
    def load(self, source: Any, device_ids: Any, state_id: Any = None) -> Any:
        load = super().load(source, device_ids, state_id)
        rows = self.device_pool.buffers()["k"][0]
        rows[torch.tensor([10**6]).to(rows.device)] = rows[:1]
        return load


def test_device_error_of_one_tier_is_not_met_by_the_next() -> None:
    assert told(of(OutOfRange), f"{SAVED}; load r0 at 10..14", "lazy")
    tier = TIERS["mla-host"]
    case = Case(tier.pool, find_clause("host_rows_are_as_wide"), "sim", "strict", 1, front=tier)
    check_row_widths(case)
    assert case.tally.programs > 1


class Undeclared(ForgetsTheTask):
    """The forgotten task does not say what it writes."""

    def load(self, *given: Any) -> Any:
        load = super(ForgetsTheTask.__mro__[1], self).load(*given)
        layers = self.device_pool.buffers()["index_k"]
        after = [*given[0].last_events(), *load.last_events()]
        load.task = simdevice.defer(partial(self._copy, layers, load), "load keys", after=after)
        return load


def test_forgotten_host_task_is_seen_whatever_it_says_of_itself() -> None:
    found = accused(of(Undeclared, DSA_ON_SIM))
    assert set(found) == {"load_is_complete_when_awaited"}
    (message,) = found.values()
    assert "it is right once every stream and host task has finished" in message


class OwnStreams(Tier):
    """Each backup has streams and stages of its own."""

    def backup(self, *given: Any) -> Any:
        way = self.backups
        way._ids_stream = self.streams.new()
        for lane in way.lanes:
            lane.stream = self.streams.new()
        size, users = max(lane.stage_bytes for lane in way.lanes), [x.stream for x in way.lanes]
        self.__dict__.setdefault("kept", []).append(way._stages)
        way._stages = Stages(size, self.streams, users, self.waits)
        return super().backup(*given)


class ChecksLoadsOnly(OwnStreams):
    """Does not see that a backup is in flight."""

    def free(self, source: Any) -> None:
        given = _host_ids(source)
        host = self.rows.check_in_use(given)
        check_idle(host, [t for t in self._transfers if t.kind == "load"])
        self.rows.give_back(given)
        self._forget_done()


def test_host_rows_of_a_backup_in_flight_are_given_away() -> None:
    assert set(accused(of(ChecksLoadsOnly))) == {"rows_in_flight_are_kept"}
    assert accused(of(OwnStreams)) == {}


def test_companions_are_those_of_the_tiers_own_pool(downstream: Any) -> None:
    entries = (
        '[Pool("p", make_token, kind="token"), HostTier("t", make_host_tier, '
        'Pool("p", make_dsa, kind="dsa"))]'
    )
    classes = (
        "from conformance import HostTier\n"
        "from reference_pools.declarations import make_dsa, make_host_tier"
    )
    result = downstream(entries, "--collect-only", "-k", "companions", classes=classes)
    ids = [line.rpartition("::")[2] for line in result.outlines if "::" in line]
    assert ids == ["test_host_tier_carries_companions[t]"]


def test_known_width_needs_no_witness() -> None:
    known = {"host_rows_are_as_wide": Known("padded for the disk")}
    made = HostTier("t", make_host_tier, POOLS["token"], known=known)
    assert made.known == known
