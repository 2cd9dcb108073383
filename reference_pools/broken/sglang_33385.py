"""A pool of a new kind never implements the pair, and retraction is not gated on it."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import KVPool, MLAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_mla


class NeverImplements(MLAPool):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        return KVPool.get_cpu_copy(self, indices, mamba_indices)

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        KVPool.load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices)


FAULT = Fault(
    reports=("sglang#33385", "sglang#24042", "sglang#27559"),
    fault_class="missing-override",
    clause="every_verb_works",
    make=partial(make_mla, cls=NeverImplements),
    kind="mla",
    program="write r0 at 5; offload r0 as c0",
)
