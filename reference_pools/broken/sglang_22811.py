"""Who reads a layer waits for its latents, but not for its index keys."""

from __future__ import annotations

from functools import partial

from reference_pools.broken import Fault
from reference_pools.declarations import make_dsa, make_host_tier
from reference_pools.host import Waits

FAULT = Fault(
    reports=("sglang#22811",),
    fault_class="missing-sync",
    clause="layer_is_complete_when_awaited",
    make=make_dsa,
    kind="dsa",
    tier=partial(make_host_tier, waits=Waits(["layer_waits_for_extras"])),
    program="schedule=lazy | write r0 at 5..9; back up r0; load r0 at 10..14; use r0",
    device="sim",
)
