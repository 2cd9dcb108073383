"""Programs in text, run on host tiers, and what is told of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from broken_tiers import make
from drawn_programs import TIERS

from conformance import HostTier
from conformance.contract import CLAUSES
from conformance.devices import is_simulated
from conformance.geometry import geometries
from conformance.programs import parse_program
from conformance.runner import run
from conformance.troubles import Tally, Trouble
from reference_pools.host import HostTier as Tier

TOKEN, HYBRID, DSA = TIERS["token-host"], TIERS["hybrid-host"], TIERS["dsa-host"]
Told = list[tuple[int, str, str]]
"""Steps, the clauses or kinds of their troubles, and what was wrong."""

IN_FLIGHT = "write r0 at 5..9; back up r0"
SAVED = f"{IN_FLIGHT}; await backup of r0"
LOADED = f"{SAVED}; load r0 at 10..14"


class RefusesInFlight(Tier):
    """Does not free rows of a copy for which nobody has waited."""

    error: type[Exception] = RuntimeError

    def free(self, source: Any) -> None:
        if self.in_flight(source):
            raise self.error("in use")
        super().free(source)

    def in_flight(self, source: Any) -> bool:
        unawaited = [transfer for transfer in self._transfers if not transfer.seen_done]
        return any(transfer.host_rows.shared(source.host_rows) for transfer in unawaited)


class FreesLater(RefusesInFlight):
    """Frees rows once somebody has waited for their copies."""

    def __init__(self, *parties: Any, **options: Any) -> None:
        super().__init__(*parties, **options)
        self.later: list[Any] = []

    def free(self, source: Any) -> None:
        self.rows.check_in_use(source.host)
        if source in self.later:
            raise ValueError("freed already")
        self.later.append(source)

    def available(self) -> dict[str, int]:
        for source in [source for source in self.later if not self.in_flight(source)]:
            self.later.remove(source)
            super().free(source)
        return super().available()


def of(cls: type[Tier], like: HostTier = TOKEN, **declared: Any) -> HostTier:
    """A tier of this class, with room for one page less than its pool has."""
    return HostTier("t", partial(make, cls=cls), like.pool, **declared)


def troubles(tier: HostTier, text: str, schedule: str = "") -> tuple[Told, Tally]:
    """What is told, and what was done: in the first geometry of the pool, whose rows are
    5..29, on the CPU, or on the simulated device where there is a schedule."""
    found: list[Trouble] = []
    geometry = geometries(tier.pool, "sim" if schedule else "cpu")[0]
    geometry = replace(geometry, schedule=schedule)
    assert is_simulated(geometry.device) == bool(schedule)
    tally = run(tier.pool, geometry, parse_program(text), found.append, tier)
    assert {trouble.clause for trouble in found if trouble.clause} <= CLAUSES.keys()
    return [(t.step, t.clause or t.kind, t.what) for t in found], tally


def told(tier: HostTier, text: str, schedule: str = "") -> Told:
    return troubles(tier, text, schedule)[0]
