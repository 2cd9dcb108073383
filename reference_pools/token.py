"""MHA, GQA and MQA: a key and a value per token and layer."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from reference_pools.base import HostCopy, KVPool, refuse_state
from reference_pools.transfer import offload_rows, reload_rows, synchronize


class TokenPool(KVPool):
    """`k` is `[rows, heads, head_dim]` and `v` is `[rows, heads, v_head_dim]` in each layer.

    Any of fp16, bf16, fp32, or an fp8 dtype whose bytes are stored as uint8. The other
    arguments are those of `KVPool`.
    """

    def __init__(
        self, *, heads: int, head_dim: int, v_head_dim: int | None = None, **geometry: Any
    ) -> None:
        super().__init__(**geometry)
        self.k = self.allocate(heads, head_dim)
        self.v = self.allocate(heads, head_dim if v_head_dim is None else v_head_dim)

    def buffers(self) -> dict[str, list[Tensor]]:
        return {"k": self.k, "v": self.v}

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        chunks = {
            name: [offload_rows(rows, indices, self.chunk_tokens) for rows in layers]
            for name, layers in self.buffers().items()
        }
        synchronize(self.device)
        return HostCopy(self.layout(), len(indices), 0, chunks)

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        for name, layers in self.buffers().items():
            for rows, chunks in zip(layers, kv_cache_cpu.chunks[name], strict=True):
                reload_rows(rows, indices, chunks)
        synchronize(self.device)
