"""Restoring the same snapshot again gives something else."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import TokenPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class ConsumesCopy(TokenPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        for chunks in kv_cache_cpu.chunks["v"]:
            for chunk in chunks:
                chunk.zero_()


FAULT = Fault(
    reports=("llama.cpp#18552",),
    fault_class="companion-state-lost",
    clause="reload_can_be_repeated",
    make=partial(make_token, cls=ConsumesCopy),
    kind="token",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
