"""Hybrid models: attention layers, and linear-attention layers with recurrent state."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from reference_pools.base import HostCopy, KVPool
from reference_pools.state import StatePool


class HybridPool(KVPool):
    """An attention pool of any kind beside a `StatePool`; both halves travel together.

    `mamba_indices` is None (the request holds no state), a 0-dim id, or a 1-D tensor.
    """

    def __init__(self, attention: KVPool, state: StatePool) -> None:
        super().__init__(**attention.geometry())
        self.attention = attention
        self.state = state

    def buffers(self) -> dict[str, list[Tensor]]:
        return self.attention.buffers() | self.state.buffers()

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        if mamba_indices is None:
            return self.attention.get_cpu_copy(indices)
        rows = self.state.rows_of(mamba_indices)
        attention = self.attention.get_cpu_copy(indices)
        return replace(attention, state=self.state.get_cpu_copy(rows))

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        state = kv_cache_cpu.state if isinstance(kv_cache_cpu, HostCopy) else None
        if (state is None) != (mamba_indices is None):
            holds = "no state" if state is None else "state"
            raise ValueError(f"copy holds {holds}, but mamba_indices is {mamba_indices}")
        if state is None or mamba_indices is None:
            self.attention.load_cpu_copy(kv_cache_cpu, indices)
            return
        rows = self.state.rows_of(mamba_indices)
        self.state.check_copy(state, rows)
        self.attention.load_cpu_copy(kv_cache_cpu, indices)
        self.state.load_cpu_copy(state, rows)

    def move_kv_cache(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        """Tokens move; state is one row per request and stays where it is."""
        self.attention.move_kv_cache(tgt_loc, src_loc)

    def copy_state(self, sources: Tensor, targets: Tensor) -> None:
        """As `StatePool.copy_state`; no token moves."""
        self.state.copy_state(sources, targets)

    def zero_state(self, ids: Tensor) -> None:
        """As `StatePool.zero_state`; no token changes."""
        self.state.zero_state(ids)
