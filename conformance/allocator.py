"""The declaration of an allocator: what hands out the ids of a pool."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from conformance.contract import Level
from conformance.known import Known
from conformance.pool import Pool
from conformance.validation import (
    check_member,
    check_tested,
)

if TYPE_CHECKING:
    from conformance.adapters import AllocatorAdapter

AllocatorKind = Literal["token", "window", "virtual", "slots", "host"]
ALLOCATOR_KINDS: tuple[AllocatorKind, ...] = ("token", "window", "virtual", "slots", "host")

ALLOCATOR_CAPABILITIES = ("offload", "groups", "sharing", "zeroing")


@dataclass(frozen=True, slots=True, eq=False)
class Allocator:
    """What hands out the ids of a pool, held to the clauses on allocators.

    `make` takes a pool that `pool.make` has built and returns a new allocator in front of
    it. `kind` says what its ids are: `token` rows of the pool (in whole pages where the page
    size is not 1), `window` the same in two id spaces of which one slides, `virtual` ids
    that the pool translates, `slots` of recurrent state, or `host` rows, which hold no bytes
    that the suite looks at.

    `lacks` names what it does not support (`offload`, `groups`, `sharing`, `zeroing`); the
    suite checks that it is refused. `undefined`, `known`, `level` and `isolated` are those of
    `Pool`; `adapter` gives the verbs other names.

    Raises `TypeError` or `ValueError` that names what is wrong.
    """

    name: str
    make: Callable[[Any], Any]
    pool: Pool
    _: KW_ONLY
    kind: AllocatorKind = "token"
    lacks: Collection[str] = ()
    undefined: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Known] = field(default_factory=dict)
    level: Level | None = None
    isolated: bool = False
    adapter: AllocatorAdapter | None = None

    def __post_init__(self) -> None:
        what = f"Allocator {self.name!r}"
        check_tested(
            "Allocator",
            self.name,
            self.make,
            lacks=self.lacks,
            capabilities=ALLOCATOR_CAPABILITIES,
            undefined=self.undefined,
            known=self.known,
            level=self.level,
            adapter=self.adapter,
        )
        if not isinstance(self.pool, Pool):
            raise TypeError(f"{what}: pool must be a Pool, got {self.pool!r}")
        check_member(f"{what}: kind", self.kind, ALLOCATOR_KINDS)
        if self.kind == "slots" and not self.pool.has_state:
            raise ValueError(f"{what}: kind 'slots' needs a pool with state")

    @property
    def offers(self) -> frozenset[str]:
        """What the clauses on allocators may ask for."""
        every = {"groups", "sharing"}
        every |= {"offload"} if self.kind in ("token", "window", "virtual") else set()
        every |= {"zeroing"} if self.kind == "slots" else set()
        every |= {self.kind} if self.kind in ("window", "virtual") else set()
        return frozenset(every - set(self.lacks) | ({"lacks"} if self.lacks else set()))
