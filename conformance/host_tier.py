"""The declaration of a host tier: host memory behind a pool, and the copies to it and back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.contract import LEVELS, Level
from conformance.known import Known
from conformance.pool import Pool
from conformance.validation import (
    check_adapter,
    check_capabilities,
    check_known,
    check_member,
    check_name,
    check_undefined,
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
        check_name("HostTier", self.name)
        if not callable(self.make):
            raise TypeError(f"{what}: make must be callable, got {self.make!r}")
        if not isinstance(self.pool, Pool):
            raise TypeError(f"{what}: pool must be a Pool, got {self.pool!r}")
        check_capabilities(what, self.lacks, HOST_TIER_CAPABILITIES)
        if "state" in self.lacks and not self.pool.has_state:
            raise ValueError(f"{what}: lacks 'state', but its pool {self.pool.name!r} has none")
        check_undefined(what, self.undefined, "HostTier")
        check_adapter(what, self.adapter, "HostTierAdapter")
        for clause_id, entry in self.known.items():
            check_known(what, clause_id, entry, "HostTier")
        if self.level is not None:
            check_member(f"{what}: level", self.level, LEVELS)

    @property
    def carries_state(self) -> bool:
        return self.pool.has_state and "state" not in self.lacks

    @property
    def offers(self) -> frozenset[str]:
        """What the clauses on host tiers may ask for, companions apart."""
        every = {"layers", "row_bytes"} - set(self.lacks)
        every |= {"state"} if self.carries_state else set()
        return frozenset(every | ({"lacks"} if self.lacks else set()))
