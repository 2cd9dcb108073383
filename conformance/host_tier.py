"""The declaration of a host tier: host memory behind a pool, and the copies to it and back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.contract import Level
from conformance.known import Known
from conformance.pool import Pool
from conformance.validation import (
    check_tested,
)

if TYPE_CHECKING:
    from conformance.adapters import HostTierAdapter

HOST_TIER_CAPABILITIES = ("layers", "polling", "row_bytes", "state")


@dataclass(frozen=True, slots=True, eq=False)
class HostTier:
    """Host memory behind a pool, and the copies to it and back, which go on while others
    compute. SGLang calls it HiCache.

    `make` takes a pool that `pool.make` has built and returns a new tier behind it. Give it
    fewer host rows than the pool has, so that it can be full. It copies whole pages; the pages
    of a request may come in any order.

    `lacks` names what it does not support: `layers` (a wait for one layer of a load),
    `polling` (asking whether a copy is done), `row_bytes` (saying how wide its rows are),
    `state` (carrying the state of a hybrid pool); the suite checks that it is refused.
    `undefined`, `known`, `level` and `isolated` are those of `Pool`; `adapter` gives the verbs
    other names.

    Raises `TypeError` or `ValueError` that names what is wrong.
    """

    name: str
    make: Callable[[Any], Any]
    pool: Pool
    _: KW_ONLY
    lacks: Collection[str] = ()
    undefined: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Known] = field(default_factory=dict)
    level: Level | None = None
    isolated: bool = False
    adapter: HostTierAdapter | None = None

    def __post_init__(self) -> None:
        what = f"HostTier {self.name!r}"
        check_tested(
            "HostTier",
            self.name,
            self.make,
            lacks=self.lacks,
            capabilities=HOST_TIER_CAPABILITIES,
            undefined=self.undefined,
            known=self.known,
            level=self.level,
            adapter=self.adapter,
        )
        if not isinstance(self.pool, Pool):
            raise TypeError(f"{what}: pool must be a Pool, got {self.pool!r}")
        if "state" in self.lacks and not self.pool.has_state:
            raise ValueError(f"{what}: lacks 'state', but its pool {self.pool.name!r} has none")

    @property
    def carries_state(self) -> bool:
        return self.pool.has_state and "state" not in self.lacks

    @property
    def offers(self) -> frozenset[str]:
        """What the clauses on host tiers may ask for, companions apart."""
        every = {"layers", "row_bytes"} - set(self.lacks)
        every |= {"state"} if self.carries_state else set()
        return frozenset(every | ({"lacks"} if self.lacks else set()))
