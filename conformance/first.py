"""The first trouble that a program meets, run by itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from conformance.allocator import Allocator
from conformance.geometry import Geometry
from conformance.host_tier import HostTier
from conformance.isolation import Announce, carry_out
from conformance.pool import Pool
from conformance.programs import Program
from conformance.runner import run
from conformance.troubles import OnTrouble, StopProgram, Tally, Trouble


def first_trouble(
    declared: Pool | Allocator | HostTier,
    geometry: Geometry,
    program: Program,
    counts: Callable[[Trouble], bool] = lambda _: True,
) -> Trouble | None:
    """The first trouble that `counts`, in a pool, allocator or host tier made for this."""
    pool, front = (declared, None) if isinstance(declared, Pool) else (declared.pool, declared)
    found: list[Trouble] = []

    def on_trouble(trouble: Trouble) -> None:
        if counts(trouble):
            found.append(trouble)
            raise StopProgram

    def work(on_trouble: OnTrouble, announce: Announce) -> Tally:
        return run(pool, geometry, program, on_trouble, front, announce)

    with suppress(StopProgram):
        carry_out(work, on_trouble, isolated=declared.isolated)
    return found[0] if found else None
