"""The checks that declarations share. Each error names what is wrong and what would be right."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from conformance.contract import LEVELS, Clause, Level, Subject, did_you_mean, find_clause
from conformance.known import Known

Place = Literal["Pool", "Allocator", "HostTier", "Family"]
"""What declares something of a clause: the one whose checks the clause is about."""
_AN: dict[Place, str] = {
    "Pool": "a Pool",
    "Allocator": "an Allocator",
    "HostTier": "a HostTier",
    "Family": "a Family",
}


def check_tested(
    place: Place,
    name: str,
    make: object,
    *,
    lacks: Collection[str],
    capabilities: Collection[str],
    undefined: Mapping[str, str],
    known: Mapping[str, Known],
    level: Level | None,
    adapter: object,
) -> None:
    """What everything that programs are run on declares."""
    what = f"{place} {name!r}"
    check_name(place, name)
    if not callable(make):
        raise TypeError(f"{what}: make must be callable, got {make!r}")
    check_capabilities(what, lacks, capabilities)
    check_undefined(what, undefined, place)
    check_adapter(what, adapter, "Adapter" if place == "Pool" else f"{place}Adapter")
    if level is not None:
        check_member(f"{what}: level", level, LEVELS)
    for clause_id, entry in known.items():
        check_known(what, clause_id, entry, place)


def check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name or not name.replace("-", "_").isidentifier():
        raise ValueError(
            f"{what}: name must be letters, digits, '-' and '_' (it becomes a test id), "
            f"got {name!r}"
        )


def check_size(what: str, constraint: str, value: object) -> None:
    if constraint == "dtypes":
        # By name: this module does not import torch.
        if type(value).__name__ != "dtype":
            raise TypeError(f"{what}: {value!r} is not a torch dtype")
    elif not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what}: {value!r} is not a whole number")
    elif value < (0 if constraint == "first_layers" else 1):
        raise ValueError(f"{what}: {value!r} is too small")


def check_member(what: str, value: str, allowed: Collection[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{what} {value!r} does not exist{did_you_mean(str(value), allowed)}")


def check_known(what: str, clause_id: str, entry: object, place: Place) -> None:
    try:
        clause = find_clause(clause_id)
    except ValueError as error:
        raise ValueError(f"{what}: known: {error}") from None
    if not isinstance(entry, Known):
        raise TypeError(f"{what}: known[{clause_id!r}] must be a Known, got {entry!r}")
    if (right := _place_of(clause)) != place:
        raise ValueError(f"{what}: {clause_id} belongs in the known of {_AN[right]}")
    has_programs = clause.subject not in ("signatures", "declarations")
    has_programs = has_programs and not clause.needs & {"lacks", "row_bytes"}
    if has_programs and entry.witness is None:
        raise ValueError(f"{what}: known[{clause_id!r}] needs a witness program")


def _place_of(clause: Clause) -> Place:
    places: dict[Subject, Place] = {
        "signatures": "Family",
        "allocators": "Allocator",
        "host tiers": "HostTier",
    }
    return places.get(clause.subject, "Pool")


def check_capabilities(what: str, lacks: Collection[str], known: Collection[str]) -> None:
    if isinstance(lacks, str):
        raise TypeError(f"{what}: lacks must be a collection, e.g. [{lacks!r}]")
    for capability in lacks:
        check_member(f"{what}: lacks", capability, known)


def check_adapter(what: str, adapter: object, protocol: str) -> None:
    """`protocol` is a name in `conformance.adapters`, which imports torch."""
    if adapter is None:
        return
    from conformance import adapters

    every = [name for name in vars(getattr(adapters, protocol)) if not name.startswith("_")]
    if missing := [name for name in every if not hasattr(adapter, name)]:
        raise TypeError(
            f"{what}: adapter {adapter!r} has no {', '.join(missing)}; "
            f"see conformance.adapters.{protocol}"
        )


def check_undefined(what: str, undefined: Mapping[str, str], place: Place) -> None:
    for clause_id, reason in undefined.items():
        try:
            clause = find_clause(clause_id)
        except ValueError as error:
            raise ValueError(f"{what}: undefined: {error}") from None
        if (right := _place_of(clause)) != place:
            raise ValueError(f"{what}: undefined[{clause_id!r}] is a clause on {_AN[right]}")
        if clause.level != "strict":
            raise ValueError(
                f"{what}: undefined[{clause_id!r}]: only what level strict adds can be "
                "undefined; a failure of a required clause belongs in `known`"
            )
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError(f"{what}: undefined[{clause_id!r}] needs a reason")
