"""A load is called done when its latents are there; its index keys are still in flight."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools.broken import Fault
from reference_pools.declarations import make_dsa, make_host_tier
from reference_pools.host import HostTier, Waits


class CallsItDone(HostTier):
    def load(self, source: Any, device_ids: Any, state_id: Any = None) -> Any:
        load = super().load(source, device_ids, state_id)
        load._waits = Waits(["done_counts_extras", "wait_covers_extras"])
        return load


FAULT = Fault(
    reports=("sglang#27504", "sglang#27550", "sglang#38031"),
    fault_class="companion-state-lost",
    clause="load_is_complete_when_awaited",
    make=make_dsa,
    kind="dsa",
    tier=partial(make_host_tier, cls=CallsItDone),
    program="schedule=lazy | write r0 at 5..9; back up r0; load r0 at 10..14",
    device="sim",
)
