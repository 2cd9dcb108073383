"""Host rows are sized with the nominal width; the device rows are wider."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import MLAPool
from reference_pools.base import refuse_state
from reference_pools.broken import Fault
from reference_pools.declarations import make_mla
from reference_pools.transfer import reload_rows


class NarrowHostRows(MLAPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        for rows, chunks in zip(self.latent, kv_cache_cpu.chunks["latent"], strict=True):
            reload_rows(rows[..., :-1], indices, [chunk[..., :-1] for chunk in chunks])


FAULT = Fault(
    reports=("sglang#37534", "sglang#32418", "sglang#13431", "sglang#40304"),
    fault_class="layout/stride",
    clause="reload_restores_the_same_rows",
    make=partial(make_mla, cls=NarrowHostRows),
    kind="mla",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
