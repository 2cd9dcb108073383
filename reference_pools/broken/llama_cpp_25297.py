"""Rows in the window are restored side by side, whichever tokens had left it before."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from conformance.adapters.plain import Plain
from reference_pools import SlidingWindowPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_sliding_window
from reference_pools.sliding_window import only


class RestoresSideBySide(SlidingWindowPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        window = kv_cache_cpu.parts["window"]
        rows = self.mapping[indices]
        rows = rows[rows > 0][: window.tokens]
        first = torch.arange(window.tokens) < len(rows)
        self.window.load_cpu_copy(only(window, first), rows)


FAULT = Fault(
    reports=("llama.cpp#25297",),
    fault_class="relocation",
    clause="reload_restores_other_rows",
    make=partial(make_sliding_window, cls=RestoresSideBySide),
    kind="token",
    adapter=Plain(metadata=["mapping"]),
    program="write r0 at 5..7; offload r0 as c0; overwrite; reload c0 at 6..8",
)
