"""The checks that declarations share. Each error names what is wrong and what would be right."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from conformance.contract import did_you_mean, find_clause
from conformance.known import Known


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


def check_known(what: str, clause_id: str, entry: object, *, signature: bool = False) -> None:
    try:
        clause = find_clause(clause_id)
    except ValueError as error:
        raise ValueError(f"{what}: known: {error}") from None
    if not isinstance(entry, Known):
        raise TypeError(f"{what}: known[{clause_id!r}] must be a Known, got {entry!r}")
    if signature != (clause.subject == "signatures"):
        place = "Family" if clause.subject == "signatures" else "Pool"
        raise ValueError(f"{what}: {clause_id} belongs in the known of a {place}")
    has_programs = clause.subject not in ("signatures", "declarations")
    if has_programs and entry.witness is None:
        raise ValueError(f"{what}: known[{clause_id!r}] needs a witness program")


def check_capabilities(what: str, lacks: Collection[str], known: Collection[str]) -> None:
    if isinstance(lacks, str):
        raise TypeError(f"{what}: lacks must be a collection, e.g. [{lacks!r}]")
    for capability in lacks:
        check_member(f"{what}: lacks", capability, known)


def check_undefined(what: str, undefined: Mapping[str, str]) -> None:
    for clause_id, reason in undefined.items():
        try:
            clause = find_clause(clause_id)
        except ValueError as error:
            raise ValueError(f"{what}: undefined: {error}") from None
        if clause.level != "strict":
            raise ValueError(
                f"{what}: undefined[{clause_id!r}]: only what level strict adds can be "
                "undefined; a failure of a required clause belongs in `known`"
            )
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError(f"{what}: undefined[{clause_id!r}] needs a reason")
