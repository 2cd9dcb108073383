"""Load launches the offload kernel: the rows go to the host, not to the device."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import TokenPool
from reference_pools.base import refuse_state
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class WrongDirection(TokenPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        for name, layers in self.buffers().items():
            for rows, chunks in zip(layers, kv_cache_cpu.chunks[name], strict=True):
                for chunk, ids in zip(chunks, indices.split(self.chunk_tokens), strict=False):
                    chunk.copy_(rows[ids])


FAULT = Fault(
    reports=("LightLLM#997",),
    fault_class="bad-input",
    clause="reload_restores_the_same_rows",
    make=partial(make_token, cls=WrongDirection),
    kind="token",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
