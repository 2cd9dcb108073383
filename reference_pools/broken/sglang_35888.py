"""A filter over the copy keeps the payload of a row and drops the scales behind it."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import DSAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_dsa


class DropsScales(DSAPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        before = [self.slots(rows)[1].clone() for rows in self.index_k]
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices=mamba_indices)
        for rows, scales in zip(self.index_k, before, strict=True):
            self.slots(rows)[1].copy_(scales)


FAULT = Fault(
    reports=("sglang#35888", "sglang#39089"),
    fault_class="companion-state-lost",
    clause="companions_travel",
    make=partial(make_dsa, cls=DropsScales),
    kind="dsa",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
