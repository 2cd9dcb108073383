"""Host tiers on the device "sim": whose copies are late, and which clause that breaks."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest
import torch
from broken_tiers import BackupEndsEarly, LoadEndsEarly, without
from drawn_programs import POOLS, TIERS, seeded
from hypothesis import given, settings
from hypothesis import strategies as st
from tier_cases import DSA, IN_FLIGHT, LOADED, SAVED, TOKEN, FreesLater, RefusesInFlight, of, told
from torch import Tensor

from conformance import HostTier, scenarios, simdevice
from conformance.case import Case
from conformance.contract import find_clause
from conformance.declared import violations_in
from conformance.runner import run
from conformance.suite.checks import quiet, without_shrinking
from conformance.timing import prepare
from conformance.troubles import Trouble
from conformance.violation import Violation
from reference_pools.host import HostTier as Tier
from reference_pools.host import Load

SCHEDULES = ("lazy", "lifo", "eager", *(f"random:{n}" for n in range(5)), "chosen:1,2,3,0,1,2,3")
LATE = ("lazy", "lifo", "random:0", "random:1")
TRIES = without_shrinking(quiet(settings(max_examples=16, database=None, derandomize=True)))
BACKUP, LOAD = "backup_is_complete_when_awaited", "load_is_complete_when_awaited"
LAYER, TIMING = "layer_is_complete_when_awaited", "host_tier_timing_changes_nothing"
KEPT = "rows_in_flight_are_kept"


@pytest.fixture(autouse=True, scope="module")
def device() -> None:
    prepare()


def drawn(tier: HostTier, scenario: scenarios.Scenario) -> None:
    """Check drawn programs, each under a schedule of its own."""
    case = Case(tier.pool, find_clause(TIMING), "sim", "strict", 1, front=tier)

    @TRIES
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        case.check(data, scenario)

    check()
    assert case.tally.programs > 0


def accused(tier: HostTier, *every: scenarios.Scenario) -> dict[str, str]:
    """What drawn programs find: the clauses, and what is told of each."""
    for scenario in every or scenarios.TIERS:
        try:
            drawn(tier, scenario)
        except (Violation, BaseExceptionGroup) as error:
            return {violation.clause: str(violation) for violation in violations_in(error)}
    return {}


def verdict(tier: HostTier, text: str) -> Violation:
    """What a check says of one program."""
    case = Case(tier.pool, find_clause(TIMING), "sim", "strict", 1, front=tier)
    with pytest.raises(Violation) as caught:
        case.run(*case.read(text))
    return caught.value


# -- who is not accused --------------------------------------------------------------------


@pytest.mark.parametrize("name", TIERS)
@pytest.mark.parametrize("scenario", scenarios.TIERS, ids=lambda s: s.__name__)
def test_correct_tier_is_not_accused_under_any_schedule(
    name: str, scenario: scenarios.Scenario
) -> None:
    found: list[Trouble] = []
    seeds = random.Random(f"{name} {scenario.__name__}").sample(range(9999), len(SCHEDULES))
    for seed, schedule in zip(seeds, SCHEDULES, strict=True):
        geometry, program = seeded(name, scenario, seed)
        on_sim = replace(geometry, device="sim", schedule=schedule)
        tally = run(TIERS[name].pool, on_sim, program, found.append, TIERS[name])
        assert (found, tally.programs) == ([], 1), f"{on_sim} | {program}"


class FreesAfterWaiting(Tier):
    """Waits for the copies of the rows that it frees."""

    def free(self, source: Any) -> None:
        for transfer in self._transfers:
            transfer.wait()
        super().free(source)


class Blocking(Tier):
    """Waits for its own copies."""

    def backup(self, device_ids: Tensor, state_id: Tensor | None = None) -> Any:
        if (backup := super().backup(device_ids, state_id)) is not None:
            backup.wait()
        return backup

    def load(self, source: Any, device_ids: Tensor, state_id: Tensor | None = None) -> Load:
        load = super().load(source, device_ids, state_id)
        load.wait()
        return load


@pytest.mark.parametrize(
    ("cls", "like"),
    [(FreesLater, DSA), (RefusesInFlight, TOKEN), (FreesAfterWaiting, TOKEN), (Blocking, DSA)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_other_ways_to_be_correct_are_not_accused(cls: type[Tier], like: HostTier) -> None:
    assert accused(of(cls, like)) == {}


# -- copies by host tasks ------------------------------------------------------------------


class TaskLoad(Load):
    """Knows of the task that copies its index keys."""

    task: simdevice.Handle

    @property
    def done(self) -> bool:
        return self.task.query() and super().done

    def wait(self) -> None:
        self.task.wait()
        super().wait()

    def wait_layer(self, layer: int) -> None:
        self.task.wait()
        super().wait_layer(layer)


class ByTask(Tier):
    """An I/O thread copies the index keys of a load."""

    made: ClassVar[type[Load]] = TaskLoad

    def __init__(self, *parties: Any, **options: Any) -> None:
        super().__init__(*parties, **options)
        for lane in self.loads.lanes:
            lane._pairs = [] if lane.part == "index_keys" else lane._pairs

    def load(self, source: Any, device_ids: Tensor, state_id: Tensor | None = None) -> Load:
        load: Any = super().load(source, device_ids, state_id)
        layers = self.device_pool.buffers()["index_k"]
        load.__class__ = self.made
        load.task = simdevice.defer(
            partial(self._copy, layers, load),
            "load index keys",
            after=[*source.last_events(), *load.last_events()],
            writes=layers,
        )
        return load

    def _copy(self, layers: Sequence[Tensor], load: Load) -> None:
        host = self.host_pool.buffers["index_k"]
        for layer, rows in enumerate(layers):
            for device, page in zip(load.device_rows.page, load.host_rows.page, strict=True):
                rows[device].copy_(host.page(layer, page)[0])
        torch.get_device_module("sim").synchronize()


class ForgetsTheTask(ByTask):
    """Calls a load done when the latents are there (sglang 27550, 38031)."""

    made = Load


TASK = r"`load index keys` queued at tests/test_tier_timing\.py:\d+ as a host task"


def test_tier_that_awaits_its_tasks_is_not_accused() -> None:
    assert accused(of(ByTask, DSA), scenarios.tiered, scenarios.filled) == {}


@pytest.mark.parametrize("schedule", ["lazy", "lifo"])
@pytest.mark.parametrize(
    ("step", "when"),
    [
        ("await load of r0", "its wait had returned"),
        ("poll load of r0", "it had said that it was done"),
    ],
)
def test_task_that_a_wait_forgets_is_told(schedule: str, step: str, when: str) -> None:
    (at, clause, what), *_ = told(of(ForgetsTheTask, DSA), f"{LOADED}; {step}", schedule)
    remedy = r"\(to wait for it: wait for the handle of the host task load index keys\)"
    late = f"{TASK} had not finished {remedy} when {when}"
    assert (at, clause) == (4, LOAD)
    assert re.match(f"index_k, layer 1, is not written yet: {late}; token row 10 of index_k,", what)


def test_tier_that_forgets_a_task_is_accused_of_its_loads() -> None:
    found = accused(of(ForgetsTheTask, DSA))
    assert set(found) == {LOAD}
    assert "program   write r0 at 5..9\n            back up r0\n            load r0" in found[LOAD]
    assert told(of(ForgetsTheTask, DSA), f"{LOADED}; await load of r0", "eager") == []


# -- copies that are never done ------------------------------------------------------------


def never_done(way: str) -> type[Tier]:
    """Says of no copy this way that it is done."""

    def make(self: Tier, *given: Any) -> Any:
        made = getattr(Tier, way)(self, *given)
        if made is not None:
            made.__class__ = type("Never", (type(made),), {"done": False})
        return made

    return type("NeverDone", (Tier,), {way: make})


@pytest.mark.parametrize("schedule", LATE)
@pytest.mark.parametrize("way", ["backup", "load"])
def test_copy_that_is_never_done_is_told(way: str, schedule: str) -> None:
    found = told(of(never_done(way)), f"{LOADED}; poll {way} of r0", schedule)
    what = f"the {way} of r0 says that it is not done after its wait"
    assert found == [(4, f"{way}_is_complete_when_awaited", what)]


@pytest.mark.parametrize(("way", "clause"), [("backup", BACKUP), ("load", LOAD)])
def test_tier_whose_copies_are_never_done_is_accused(way: str, clause: str) -> None:
    """By a program that asks, or by one that drops what was awaited: its rows stay in use."""
    found = accused(of(never_done(way)), scenarios.tiered)
    assert found
    assert set(found) <= {clause, "host_tier_verbs_work"}


# -- what a message says -------------------------------------------------------------------

SITE = r"reference_pools/host/lanes\.py:\d+ on stream (\d+)"
REMEDY = r"\(to wait for it: synchronize stream \1 or wait for an event recorded on it afterwards\)"


def early(*points: str, pool: str = "dsa") -> HostTier:
    return HostTier("t", without(*points), POOLS[pool])


def of_what(found: Any, clause: str) -> list[tuple[int, str]]:
    return [(at, what) for at, told_clause, what in found if told_clause == clause]


def test_layer_that_was_read_too_early_is_told() -> None:
    found = of_what(told(early("layer_waits_for_extras"), f"{LOADED}; use r0", "lazy"), LAYER)
    assert {at for at, _ in found} == {4}
    for layer, (_, what) in enumerate(found, 1):
        late = f"`index_put_` queued at {SITE} had not finished {REMEDY}"
        expected = f"index_k, layer {layer}, was read too early: {late} when it was"
        assert re.fullmatch(expected, what)
    assert len(found) == 3


def test_layer_of_the_main_part_that_was_read_too_early_is_told() -> None:
    tier = early("layer_waits_for_main", pool="token")
    names = [
        what.partition(", was read too early: `index_put_` queued at reference_pools/host/")[0]
        for _, what in of_what(told(tier, f"{LOADED}; use r0", "lazy"), LAYER)
    ]
    assert names[:2] == ["k, layer 1", "v, layer 1"]


def test_copies_that_a_wait_leaves_out_are_told() -> None:
    spoilt = f"{SAVED}; write r1 at 5..9; load r0 at 10..14; await load of r0"
    backup = of_what(told(of(BackupEndsEarly, DSA), spoilt, "lifo"), BACKUP)
    load = of_what(told(of(LoadEndsEarly, DSA), f"{LOADED}; await load of r0", "lazy"), LOAD)
    for found, at, verb, name in (
        (backup, 5, "read", "index_select"),
        (load, 4, "written", "index_put_"),
    ):
        ((step, what),) = found
        late = f"`{name}` queued at {SITE} had not finished {REMEDY}"
        expected = f"index_k, layer \\d, is not {verb} yet: {late} when its wait had returned"
        assert step == at
        assert re.match(f"{expected}; token row ", what)


def test_copy_that_nobody_awaits_is_judged_at_the_end_as_its_own_step() -> None:
    text = f"{SAVED}; load r0 at 10..14"
    ((at, what),) = of_what(told(of(LoadEndsEarly, DSA), text, "lazy"), LOAD)
    assert at == 3
    assert " when its wait had returned, at the end; token row 10 of index_k" in what


def test_wait_on_the_host_is_enough_for_the_stream() -> None:
    tier = early("layer_waits_for_main", "layer_waits_for_extras")
    assert told(tier, f"{LOADED}; await load of r0; use r0; read r0", "lazy") == []


def test_stream_that_reads_before_a_load_into_its_rows_reads_what_was_there() -> None:
    text = f"{SAVED}; write r1 at 10..14; read r1; load r0 at 10..14; await load of r0"
    tier = early("load_waits_for_compute", pool="token")
    found = [each for schedule in SCHEDULES for each in told(tier, text, schedule)]
    seen = [(at, what) for at, _, what in found if what.startswith("the stream read it: ")]
    assert {at for at, _ in seen} == {4}
    assert all("holds token 0 of r0" in what for _, what in seen)
    assert [told(TOKEN, text, schedule) for schedule in SCHEDULES] == [[]] * len(SCHEDULES)


# -- which clause is blamed ----------------------------------------------------------------


class GivesBackups(Tier):
    """A stream for each backup, and `free` looks at loads alone."""

    def __init__(self, *parties: Any, **options: Any) -> None:
        super().__init__(*parties, **options)
        self.kept: list[Any] = []

    def backup(self, device_ids: Tensor, state_id: Tensor | None = None) -> Any:
        way = self.backups
        self.kept.append(way)
        self.backups = type(way)(
            "backup", self.device_pool, self.host_pool, self.streams, self.waits
        )
        return super().backup(device_ids, state_id)

    def free(self, source: Any) -> None:
        every, self._transfers = self._transfers, [t for t in self._transfers if t.kind == "load"]
        try:
            super().free(source)
        finally:
            self._transfers = every


REUSED = (
    "write r0 at 5..9; back up r0; drop r0; write r1 at 10..14; back up r1; await backup of r1; "
    "load r1 at 15..19; await load of r1"
)


def test_host_rows_of_a_backup_in_flight_that_another_gets_are_told() -> None:
    violation = verdict(of(GivesBackups), f"schedule=lazy | {REUSED}")
    assert violation.clause == KEPT
    assert "holds token 0 of r0 (k, layer 1, row 5, write 1), expected token 0 of r1" in str(
        violation
    )


@pytest.mark.parametrize(
    ("point", "program", "clause"),
    [
        ("backup_waits_for_compute", SAVED + "; load r0 at 10..14", TIMING),
        (
            "free_checks_copies",
            f"{LOADED}; drop r0; write r1 at 15..19; back up r1; await backup of r1",
            KEPT,
        ),
        (
            "load_waits_for_backup",
            f"{IN_FLIGHT}; load r0 at 10..14",
            "copies_of_one_row_run_in_order",
        ),
    ],
)
def test_bytes_that_depend_on_time_are_blamed_on_what_makes_them(
    point: str, program: str, clause: str
) -> None:
    found = set()
    for schedule in LATE:
        tier = HostTier("t", without(point), POOLS["token"], level="strict")
        trouble = told(tier, program, schedule)
        if trouble:
            found.add(verdict(tier, f"schedule={schedule} | {program}").clause)
    assert found == {clause}
