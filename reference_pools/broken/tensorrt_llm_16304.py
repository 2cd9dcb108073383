"""Recurrent state is kept in the dtype of the attention layers."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from reference_pools import HybridPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_hybrid


class CastsState(HybridPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        if mamba_indices is not None:
            row = int(mamba_indices)
            narrow = self.state.temporal[:, row].to(torch.float8_e5m2)
            self.state.temporal[:, row] = narrow.to(torch.float32)


FAULT = Fault(
    reports=("TensorRT-LLM#16304",),
    fault_class="dtype/scale",
    clause="state_travels",
    make=partial(make_hybrid, cls=CastsState),
    kind="hybrid",
    program="write r0 at 5 state 1; offload r0 as c0 state 1; overwrite; reload c0 at 5 state 1",
)
