"""The sparse-attention pool's pair takes no mamba_indices, which allocators always pass."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import DSAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_dsa


class DropsKeyword(DSAPool):
    def get_cpu_copy(self, indices: Any) -> Any:  # type: ignore[override]
        return super().get_cpu_copy(indices)

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any) -> None:  # type: ignore[override]
        super().load_cpu_copy(kv_cache_cpu, indices)


FAULT = Fault(
    reports=("sglang#25828", "sglang#27645", "sglang#27229", "sglang#27802", "sglang#29146"),
    fault_class="signature-drift",
    clause="override_accepts_every_keyword",
    make=partial(make_dsa, cls=DropsKeyword),
    kind="dsa",
    program="write r0 at 5; offload r0 as c0",
)
