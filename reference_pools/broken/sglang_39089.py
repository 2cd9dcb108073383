"""The host mirrors the payload alone; the scales stay those of whoever had the rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from reference_pools import QuantizedPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_quantized


class MirrorsPayloadAlone(QuantizedPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        scales = [*self.k_scale, *self.v_scale]
        kept = [rows.clone() for rows in scales]
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        for rows, before in zip(scales, kept, strict=True):
            rows.copy_(before)


FAULT = Fault(
    reports=("sglang#39089",),
    fault_class="companion-state-lost",
    clause="companions_travel",
    make=partial(make_quantized, cls=MirrorsPayloadAlone, bits=8),
    kind="token",
    sizes={"head_dims": [32], "v_head_dims": [48], "dtypes": [torch.bfloat16, torch.float16]},
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
