"""From what a session declares to the cases of each check."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from conformance.allocator import Allocator
from conformance.contract import Clause, Level, applies
from conformance.devices import is_simulated
from conformance.host_tier import HostTier
from conformance.options import is_replay, replay_text
from conformance.pool import Family, Pool

if TYPE_CHECKING:
    from conformance.case import Case
    from conformance.signatures.family import ClassCase
    from conformance.violation import Violation


@dataclass(frozen=True, slots=True)
class Declared:
    """Everything that `pytest_kv_pools` returned in this session, and what its pools showed
    when each was built once: their classes, and the names of those with companions."""

    pools: tuple[Pool, ...]
    allocators: tuple[Allocator, ...]
    tiers: tuple[HostTier, ...]
    families: tuple[Family, ...]
    made: frozenset[type]
    with_companions: frozenset[str]


Tested = Pool | Allocator | HostTier
"""What programs are run on."""
Entry = Tested | Family

FEWEST = 10
SHARE = 0.4
"""The share of Hypothesis's examples that is run on a simulated device, or of a host tier, if
that is not too few."""

_DECLARED = pytest.StashKey[Declared]()
_PASSED = pytest.StashKey[dict[Any, Any]]()
_CHECKED = pytest.StashKey[set[tuple[str, str, str]]]()


def declared(config: pytest.Config) -> Declared:
    """What the session declares; `UsageError` where that is not a list of such entries."""
    if _DECLARED not in config.stash:
        entries: list[Any] = []
        for returned in config.hook.pytest_kv_pools(config=config):
            if isinstance(returned, Entry):
                raise pytest.UsageError(f"pytest_kv_pools must return a list, got {returned!r}")
            entries.extend(returned)
        for entry in entries:
            if not isinstance(entry, Entry):
                raise pytest.UsageError(
                    f"pytest_kv_pools: {entry!r} is not a Pool, an Allocator, a HostTier or a "
                    "Family"
                )
        pools = tuple(e for e in entries if isinstance(e, Pool))
        allocators = tuple(e for e in entries if isinstance(e, Allocator))
        tiers = tuple(e for e in entries if isinstance(e, HostTier))
        named: list[Tested] = [*pools, *allocators, *tiers]
        names = [entry.name for entry in named]
        for name in names:
            if names.count(name) > 1:
                raise pytest.UsageError(
                    f"pytest_kv_pools: two pools, allocators or host tiers are named {name!r}"
                )
        families = tuple(e for e in entries if isinstance(e, Family))
        _check_device(config)
        _check_isolation(config, [*pools, *allocators, *tiers])
        made, companions = _probe(config, {pool.name: pool for pool in pools})
        _, behind_tiers = _probe(config, {tier.name: tier.pool for tier in tiers})
        config.stash[_DECLARED] = Declared(
            pools, allocators, tiers, families, made, companions | behind_tiers
        )
    return config.stash[_DECLARED]


def _check_device(config: pytest.Config) -> None:
    import torch

    name = config.getoption("--kv-device")
    if is_simulated(name):
        _simulate(name)
        return
    try:
        device = torch.device(name)
    except RuntimeError:
        raise pytest.UsageError(f"--kv-device={name}: not a torch device") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise pytest.UsageError(f"--kv-device={name}: torch sees no CUDA device")


def _simulate(name: str) -> None:
    from conformance.simdevice.errors import SimUnavailable
    from conformance.timing import prepare

    if name != "sim":
        raise pytest.UsageError(f"--kv-device={name}: there is one simulated device, sim")
    try:
        prepare()
    except SimUnavailable as error:
        raise pytest.UsageError(f"--kv-device={name}: {error}") from None


def _check_isolation(config: pytest.Config, entries: Sequence[Tested]) -> None:
    device = config.getoption("--kv-device")
    for entry in entries:
        if entry.isolated and not device.startswith("cpu"):
            raise pytest.UsageError(
                f"{type(entry).__name__} {entry.name!r} is isolated, and --kv-device={device}: "
                "a forked process cannot use the device; leave one of the two out"
            )


def _probe(
    config: pytest.Config, pools: Mapping[str, Pool]
) -> tuple[frozenset[type], frozenset[str]]:
    """Which classes the pools make, and the names of those with companions. A pool that cannot
    be built is left out here: its checks say why."""
    from conformance.build import build_anew
    from conformance.geometry import geometries

    made: set[type] = set()
    companions: set[str] = set()
    for name, pool in pools.items():
        try:
            built, inventory = build_anew(
                pool, geometries(pool, config.getoption("--kv-device"))[0]
            )
        except Exception:
            companions.add(name)
            continue
        made.add(type(built))
        if any(buffer.role == "companion" for buffer in inventory.buffers):
            companions.add(name)
    return frozenset(made), frozenset(companions)


def cases_of(config: pytest.Config, clause: Clause) -> list[Any]:
    """A `Case` for each pool, allocator or host tier that `clause` applies to, or a `ClassCase`
    for each class."""
    found = declared(config)
    version = int(config.getini("kv_contract"))
    if clause.subject == "signatures":
        return [
            case
            for family in found.families
            if applies(clause, level=_level(config, family), version=version)
            for case in _class_cases(family, clause, found.made, _level(config, family))
        ]
    return [
        make_case(config, entry, clause, replay_text(config))
        for entry in subjects_of(found, clause)
        if not why_off(config, entry, clause)
    ]


def _class_cases(
    family: Family, clause: Clause, made: frozenset[type], level: Level
) -> list[ClassCase]:
    from conformance.signatures.family import class_cases
    from conformance.signatures.findings import ScanError

    try:
        return class_cases(family, clause, made, level)
    except ScanError as error:
        raise pytest.UsageError(f"Family {family.name}: {error}") from None


def subjects_of(found: Declared, clause: Clause) -> Sequence[Tested]:
    """The pools, the allocators or the host tiers, whichever `clause` is about."""
    if clause.subject == "host tiers":
        return found.tiers
    return found.allocators if clause.subject == "allocators" else found.pools


def make_case(config: pytest.Config, entry: Tested, clause: Clause, replay: str | None) -> Case:
    """`entry` under `clause` as this session asks for it."""
    from conformance.case import Case

    return Case(
        entry if isinstance(entry, Pool) else entry.pool,
        clause,
        config.getoption("--kv-device"),
        _level(config, entry),
        int(config.getini("kv_contract")),
        replay,
        None if isinstance(entry, Pool) else entry,
        config.stash.setdefault(_PASSED, {}),
        _most_programs(config.getoption("--kv-device"), entry),
    )


def _most_programs(device: str, entry: Tested) -> float:
    """A simulated device is slow, and every program has a schedule of its own there; one on a
    host tier has several requests: a part of the profile's examples does."""
    from hypothesis import settings

    is_slow = is_simulated(device) or isinstance(entry, HostTier)
    return max(FEWEST, settings().max_examples * SHARE) if is_slow else math.inf


def why_off(config: pytest.Config, entry: Tested, clause: Clause) -> str:
    """Why `clause` is not checked of `entry` in this session; "" where it is."""
    offers = _offers(declared(config), entry) | _offered_by(config.getoption("--kv-device"))
    missing = clause.needs - offers
    if missing:
        return f"{clause.id} needs what {entry.name!r} has not: {', '.join(sorted(missing))}"
    return why_not_judged(config, entry, clause)


def why_not_judged(config: pytest.Config, entry: Tested, clause: Clause) -> str:
    """Why a check that finds `clause` broken says nothing of it; "" where it fails."""
    if clause.id in entry.undefined:
        return f"{clause.id} is undefined for {entry.name!r}: {entry.undefined[clause.id]}"
    level, version = _level(config, entry), int(config.getini("kv_contract"))
    if not applies(clause, level=level, version=version):
        return f"{clause.id} is off at level {level} of contract {version}"
    return ""


def _level(config: pytest.Config, entry: Tested | Family) -> Level:
    level: Level = entry.level or config.getini("kv_level")
    return level


def _offers(found: Declared, entry: Tested) -> frozenset[str]:
    if isinstance(entry, Allocator):
        return entry.offers
    with_companions = entry.name in found.with_companions
    return entry.offers | ({"companions"} if with_companions else set())


def _offered_by(device: str) -> frozenset[str]:
    return frozenset({"simulated"}) if is_simulated(device) else frozenset()


def params_of(config: pytest.Config, clause: Clause) -> list[Any]:
    """The pytest parameters of the check of `clause`, one a case."""
    cases = cases_of(config, clause)
    config.stash.setdefault(_CHECKED, set()).update((c.owner, c.name, clause.id) for c in cases)
    return [_param(config, case) for case in cases]


def _param(config: pytest.Config, case: Case | ClassCase) -> Any:
    """A known failure is a strict xfail."""
    from conformance.violation import violation_of

    if case.known is None or replay_text(config) is not None:
        return pytest.param(case, id=case.name)
    reason = f"known: {case.known}; if it passes now, delete this entry of `known`"
    expected = violation_of(case.clause.id)
    mark = pytest.mark.xfail(strict=True, raises=expected, reason=reason)
    return pytest.param(case, id=case.name, marks=mark)


def require_checks(config: pytest.Config) -> None:
    """`UsageError` for a declared pool, family or known failure that no check looks at.

    What counts is what was generated, not what was selected from it.
    """
    found, checked = declared(config), config.stash[_CHECKED]
    owners = {owner for owner, _, _ in checked}
    entries: list[Tested | Family] = [
        *found.pools,
        *found.allocators,
        *found.tiers,
        *found.families,
    ]
    for entry in entries:
        if entry.name not in owners:
            raise pytest.UsageError(
                f"{type(entry).__name__} {entry.name!r} has no check: the suite was collected "
                "without those that apply to it; use `from conformance.suite import *`"
            )
    known = [
        (entry.name, entry.name, clause)
        for entry in entries
        if not isinstance(entry, Family)
        for clause in entry.known
    ]
    known += [
        (f.name, name, clause)
        for f in found.families
        for name in f.known
        for clause in f.known[name]
    ]
    for owner, name, clause in known:
        if (owner, name, clause) not in checked:
            raise pytest.UsageError(f"known[{clause!r}] of {name!r}: no check of it was collected")


def complete(config: pytest.Config, case: Any) -> None:
    """A check has passed. Fail one of offload and reload that restored no row: it has seen
    nothing."""
    if case.clause.subject == "signatures":
        return
    case.complete()
    replayed = is_replay(config)
    moves = "offload" in case.clause.needs or case.draws_from_tier
    if moves and not replayed and case.known is None and not case.rows_compared:
        pytest.fail(
            f"{case.clause.id}: no row of pool {case.pool.name!r} was reloaded and compared in "
            f"{case.tally.programs} programs ({case.tally.known} met a known failure)",
            pytrace=False,
        )


def violations_in(error: BaseException | None) -> list[Violation]:
    """The violations that an exception is or, as a group, holds."""
    if error is None:
        return []
    from conformance.violation import Violation

    return list(_flatten(error, Violation))


def _flatten(error: BaseException, kind: type[Violation]) -> Iterator[Violation]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _flatten(inner, kind)
    elif isinstance(error, kind):
        yield error
