"""The members of a family that are read from source, for the checks of a session."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from conformance.pool import Family
from conformance.signatures.findings import Scan
from conformance.signatures.imported import exempt_names, is_module, within
from conformance.signatures.live import qualified
from conformance.signatures.source import scan


@dataclass(frozen=True, slots=True)
class SourceMembers:
    """The scan of a family, the dotted names of the classes that are judged, the modules that
    cannot be read, each with the reason, and the exemptions of nothing."""

    scan: Scan
    classes: tuple[str, ...]
    unreadable: dict[str, str]
    stale: tuple[str, ...]


@lru_cache(maxsize=64)
def source_members(family: Family) -> SourceMembers:
    """Scan the family's packages. Raises `ScanError`."""
    root = f"{family.root.__module__}:{family.root.__qualname__}"
    found = scan(root, tuple(family.packages), family.verbs)
    exempt = exempt_names(family)
    modules = [name for name in exempt if name not in found.classes and is_module(name)]
    unreadable = {
        finding.cls: finding.text.partition(" ")[2]
        for finding in found.findings
        if finding.clause == "every_subclass_is_covered" and finding.severity == "error"
    }
    return SourceMembers(
        found,
        tuple(name for name in found.classes if not within(name, modules)),
        {name: text for name, text in unreadable.items() if not within(name, exempt)},
        tuple(_stale(family, found, [*modules, *unreadable])),
    )


def _stale(family: Family, found: Scan, modules: list[str]) -> list[str]:
    names = [qualified(k) if isinstance(k, type) else k for k in family.exempt]
    return [name for name in names if name not in found.classes and name not in modules]
