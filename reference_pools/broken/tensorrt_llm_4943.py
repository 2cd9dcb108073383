"""A K-only cache is copied with the factor of two of a K+V cache."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import MLAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_mla


class CopiesTwice(MLAPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        free = (indices + 1).clamp(max=self.token_rows - 1)
        past = free[(free[:, None] != indices).all(1)]
        for rows in self.latent:
            rows[past] = 0


FAULT = Fault(
    reports=("TensorRT-LLM#4943",),
    fault_class="layout/stride",
    clause="reload_leaves_other_rows_alone",
    make=partial(make_mla, cls=CopiesTwice),
    kind="mla",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
