"""Retraction saved the latents alone; the index keys of the freed pages were overwritten."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import DSAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_dsa


class LosesIndexKeys(DSAPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        held = [rows.clone() for rows in self.index_k]
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices=mamba_indices)
        for rows, before in zip(self.index_k, held, strict=True):
            rows.copy_(before)


FAULT = Fault(
    reports=("sglang#23346",),
    fault_class="companion-state-lost",
    clause="companions_travel",
    make=partial(make_dsa, cls=LosesIndexKeys),
    kind="dsa",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
