"""A copy says nothing of its layout, so a cache of another layout loads it."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import TokenPool
from reference_pools.base import refuse_state
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class AcceptsAnyLayout(TokenPool):
    def layout(self) -> tuple[tuple[object, ...], ...]:
        return ()

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        for name, layers in self.buffers().items():
            for rows, chunks in zip(layers, kv_cache_cpu.chunks[name], strict=False):
                for chunk in chunks:
                    rows[indices[: len(chunk)]] = chunk
                    indices = indices.roll(-len(chunk))


FAULT = Fault(
    reports=("llama.cpp#28498",),
    fault_class="dtype/scale",
    clause="foreign_copy_is_refused",
    make=partial(make_token, cls=AcceptsAnyLayout),
    kind="token",
    program="foreign c0 of 1; refuse reload c0 at 5",
)
