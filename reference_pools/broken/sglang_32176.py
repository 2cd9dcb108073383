"""The target's rows are restored, the draft model's are left to whoever had them."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import DraftPairPool
from reference_pools.base import refuse_state
from reference_pools.broken import Fault
from reference_pools.declarations import make_draft_pair


class RestoresTheTargetAlone(DraftPairPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        self.target.load_cpu_copy(kv_cache_cpu.parts["target"], indices)


FAULT = Fault(
    reports=("sglang#32176",),
    fault_class="companion-state-lost",
    clause="companions_travel",
    make=partial(make_draft_pair, cls=RestoresTheTargetAlone),
    kind="token",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
