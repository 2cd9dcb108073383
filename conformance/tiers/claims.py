"""What a host tier says of itself, checked: how wide its rows are, and what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from conformance.build import build_anew
from conformance.case import Case
from conformance.claims import accepted, who
from conformance.geometry import Geometry, geometries
from conformance.host_tier import HostTier
from conformance.tiers.front import host_tier_adapter_of
from conformance.troubles import Tally
from conformance.violation import violation


def check_row_widths(case: Case) -> None:
    """In every geometry that differs in its rows, each buffer has host rows of as many bytes as
    the device's."""
    tier = _tier_of(case)
    first: dict[Geometry, Geometry] = {}
    for geometry in geometries(case.pool, case.device):
        first.setdefault(replace(geometry, size=0, chunk_tokens=0, first_layer=0), geometry)
    for geometry in first.values():
        pool, inventory = build_anew(case.pool, geometry)
        widths = host_tier_adapter_of(tier).row_bytes(tier.make(pool))
        case.tally.add(Tally(programs=1))
        for buffer in inventory.buffers:
            if buffer.unit == "state" and not tier.carries_state:
                continue
            device = {rows.shape[1] for rows in buffer.rows}
            host = widths.get(buffer.name)
            if device != {host}:
                told = "has no rows on the host" if host is None else f"{host} bytes on the host"
                wide = ", ".join(map(str, sorted(device)))
                found = f"a row of {buffer.name}: {told}, {wide} on the device"
                evidence = [(case.subject, case.name), ("geometry", str(geometry))]
                raise violation(case.clause.id, [*evidence, ("found", found)])


def check_lacking_host_verbs(case: Case) -> None:
    """What the tier lacks raises `NotImplementedError`."""
    tier = _tier_of(case)
    geometry = geometries(case.pool, case.device)[0]
    for capability in sorted(tier.lacks):
        pool, _ = build_anew(case.pool, geometry)
        for name, call in _calls(tier, tier.make(pool), geometry, capability):
            case.tally.add(Tally(programs=1))
            if problem := accepted(name, call, capability):
                raise violation(case.clause.id, [*who(case, geometry, capability, problem)])


def _calls(
    tier: HostTier, made: Any, geometry: Geometry, capability: str
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The verbs that this capability stands for."""
    adapter, page = host_tier_adapter_of(tier), geometry.page_size
    ids = torch.arange(page, 2 * page, device=geometry.device)
    if capability == "row_bytes":
        yield "row_bytes", lambda: adapter.row_bytes(made)
        return
    if capability == "state":
        yield "backup", lambda: adapter.backup(made, ids, torch.ones_like(ids[:1]))
        return
    backup = adapter.backup(made, ids, None)
    load = adapter.load(made, backup, ids, None)
    if capability == "layers":
        yield "wait_layer", lambda: adapter.wait_layer(made, load, 0)
    else:
        yield "is_done", lambda: adapter.is_done(made, load)


def _tier_of(case: Case) -> HostTier:
    assert isinstance(case.front, HostTier)
    return case.front
