"""Ids of a space widened over the ranks address the rows of one rank."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import MLAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_mla


class WidenedIds(MLAPool):
    RANKS = 3

    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        return super().get_cpu_copy(self.local(indices), mamba_indices)

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        super().load_cpu_copy(kv_cache_cpu, self.local(indices), mamba_indices)

    def local(self, indices: Any) -> Any:
        self.check_tokens(indices)
        return self.page_size + indices // self.RANKS


FAULT = Fault(
    reports=("sglang#38645", "sglang#38790", "sglang#39487"),
    fault_class="index-space-mismatch",
    clause="reload_restores_the_same_rows",
    make=partial(make_mla, cls=WidenedIds),
    kind="mla",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
