"""Retraction saves the attention layers alone; the recurrent state is dropped."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import HybridPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_hybrid


class DropsState(HybridPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        held = [rows.clone() for layers in self.state.buffers().values() for rows in layers]
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        rows_now = [rows for layers in self.state.buffers().values() for rows in layers]
        for rows, before in zip(rows_now, held, strict=True):
            rows.copy_(before)


FAULT = Fault(
    reports=("sglang#22493",),
    fault_class="companion-state-lost",
    clause="state_travels",
    make=partial(make_hybrid, cls=DropsState),
    kind="hybrid",
    program="write r0 at 5 state 1; offload r0 as c0 state 1; overwrite; reload c0 at 5 state 1",
)
