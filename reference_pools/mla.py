"""Multi-head latent attention: one latent per token and layer."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from reference_pools.base import HostCopy, KVPool, refuse_state
from reference_pools.transfer import offload_rows, reload_rows


class MLAPool(KVPool):
    """`latent` is `[rows, 1, kv_lora_rank + qk_rope_head_dim]` in each layer.

    The row holds the compressed KV, then the decoupled rotary key (DeepSeek-V2, section
    2.1). The other arguments are those of `KVPool`.
    """

    def __init__(self, *, kv_lora_rank: int, qk_rope_head_dim: int, **geometry: Any) -> None:
        super().__init__(**geometry)
        self.latent = self.allocate(1, kv_lora_rank + qk_rope_head_dim)

    def buffers(self) -> dict[str, list[Tensor]]:
        return {"latent": self.latent}

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        latent = [offload_rows(rows, indices, self.chunk_tokens) for rows in self.latent]
        self.wait("offload")
        return HostCopy(self.layout(), len(indices), 0, {"latent": latent})

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        for rows, chunks in zip(self.latent, kv_cache_cpu.chunks["latent"], strict=True):
            reload_rows(rows, indices, chunks)
        self.wait("reload")
