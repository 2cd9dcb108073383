"""Offload and reload of every buffer whose rows are the token ids themselves."""

from __future__ import annotations

from torch import Tensor

from reference_pools.base import HostCopy, KVPool, refuse_state
from reference_pools.transfer import offload_rows, reload_rows


class RowPool(KVPool):
    """A pool whose token ids index axis 0 of every tensor in `token_buffers`.

    A subclass declares its buffers and gets both verbs: no buffer can be left out of one.
    """

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        chunks = {
            name: [offload_rows(rows, indices, self.chunk_tokens) for rows in layers]
            for name, layers in self.token_buffers().items()
        }
        self.wait("offload")
        return HostCopy(self.layout(), len(indices), 0, chunks)

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        for name, layers in self.token_buffers().items():
            for rows, chunks in zip(layers, kv_cache_cpu.chunks[name], strict=True):
                reload_rows(rows, indices, chunks)
        self.wait("reload")
