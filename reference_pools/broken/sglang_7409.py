"""The copy is made in chunks, but only the first one is loaded."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import MLAPool
from reference_pools.base import refuse_state
from reference_pools.broken import Fault
from reference_pools.declarations import make_mla
from reference_pools.transfer import reload_rows


class LoadsOneChunk(MLAPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        for rows, chunks in zip(self.latent, kv_cache_cpu.chunks["latent"], strict=True):
            reload_rows(rows, indices, chunks[:1])


FAULT = Fault(
    reports=("sglang#7409",),
    fault_class="missing-override",
    clause="chunking_changes_nothing",
    make=partial(make_mla, cls=LoadsOneChunk),
    kind="mla",
    program="chunk_tokens=5 | write r0 at 5..10; offload r0 as c0; overwrite; reload c0 at 5..10",
)
