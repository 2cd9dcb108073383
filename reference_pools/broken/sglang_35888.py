"""The filter for evicted window rows takes a chunk for two tensors, and drops the scales."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from conformance.adapters.plain import Plain
from conformance.geometry import Geometry
from reference_pools import SlidingWindowPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_fp8, make_sliding_window


class FiltersTwoTensors(SlidingWindowPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        _, _, *scales = self.window.buffers().values()
        kept = [[rows.clone() for rows in layers] for layers in scales]
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        for layers, before in zip(scales, kept, strict=True):
            for rows, old in zip(layers, before, strict=True):
                rows.copy_(old)


def make(geometry: Geometry) -> FiltersTwoTensors:
    unscaled = make_sliding_window(geometry)
    window = replace(geometry, size=unscaled.window.size, layers=unscaled.window.layers)
    scaled: list[Any] = [make_fp8(geometry), make_fp8(window)]
    pool = FiltersTwoTensors(*scaled)
    pool.mapping.copy_(unscaled.mapping)
    return pool


FAULT = Fault(
    reports=("sglang#35888",),
    fault_class="companion-state-lost",
    clause="companions_travel",
    make=make,
    kind="token",
    adapter=Plain(metadata=["mapping"]),
    sizes={"head_dims": [32], "v_head_dims": [48], "dtypes": [torch.bfloat16, torch.float16]},
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
