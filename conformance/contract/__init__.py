"""The contract: every clause, as one sentence that what is declared keeps or breaks."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from types import MappingProxyType

from conformance.contract import allocators, host_tiers, pools, signatures, timing
from conformance.contract.clause import Clause, Level, Need, Subject

__all__ = [
    "CLAUSES",
    "LEVELS",
    "VERSION",
    "Clause",
    "Level",
    "Need",
    "Subject",
    "applies",
    "did_you_mean",
    "find_clause",
]

VERSION = 1
"""The newest version of the contract. A clause binds from the version in its `since`."""

LEVELS: tuple[Level, ...] = ("required", "strict")

CLAUSES: MappingProxyType[str, Clause] = MappingProxyType(
    {c.id: c for part in (pools, timing, allocators, host_tiers, signatures) for c in part.CLAUSES}
)


def find_clause(id: str) -> Clause:
    """The clause named `id`; `ValueError` with the nearest name for one that does not exist."""
    if id in CLAUSES:
        return CLAUSES[id]
    raise ValueError(f"no clause is named {id!r}{did_you_mean(id, CLAUSES)}")


def did_you_mean(word: str, known: Collection[str]) -> str:
    """`; did you mean 'x'?`, or the list of what is known where nothing is near."""
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; it must be one of {', '.join(sorted(known))}"


def applies(clause: Clause, *, level: Level, version: int) -> bool:
    """Whether a subject declared at `level` under contract `version` is held to `clause`."""
    return clause.since <= version and LEVELS.index(clause.level) <= LEVELS.index(level)
