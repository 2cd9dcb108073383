"""Page-major memory: all layers of a page lie side by side, so one transfer takes a page."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from reference_pools.base import HostCopy, KVPool, refuse_state
from reference_pools.transfer import offload_by, reload_by


class PageMajorPool(KVPool):
    """`kv` is one tensor `[pages + 1, layers, 2, page_size, heads, head_dim]`, keys before values.

    Buffers `k` and `v` are views `[pages + 1, page_size, heads, head_dim]` of it, one per
    layer. Token id `t` is slot `t % page_size` of page `t // page_size`; ids may come in
    any order. The other arguments are those of `KVPool`.
    """

    def __init__(self, *, heads: int, head_dim: int, **geometry: Any) -> None:
        super().__init__(**geometry)
        pages = self.token_rows // self.page_size
        self.kv = torch.zeros(
            (pages, self.layers, 2, self.page_size, heads, head_dim),
            dtype=self.store_dtype,
            device=self.device,
        )

    def buffers(self) -> dict[str, list[Tensor]]:
        keys, values = self.kv.unbind(2)
        return {"k": list(keys.unbind(1)), "v": list(values.unbind(1))}

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        chunks = offload_by(self.gather, indices, self.chunk_tokens)
        self.wait("offload")
        return HostCopy(self.layout(), len(indices), 0, {"kv": [chunks]})

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        reload_by(self.scatter, indices, kv_cache_cpu.chunks["kv"][0], self.kv.device)
        self.wait("reload")

    def move_kv_cache(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        self.check_move(tgt_loc, src_loc)
        self.scatter(tgt_loc, self.gather(src_loc))
        self.wait("move")

    def gather(self, ids: Tensor) -> Tensor:
        """The tokens `ids` `[n]`: a new tensor `[n, layers, 2, heads, head_dim]`."""
        return self.slots[ids // self.page_size, ids % self.page_size]

    def scatter(self, ids: Tensor, tokens: Tensor) -> None:
        """Write what `gather` returned into the tokens `ids`."""
        self.slots[ids // self.page_size, ids % self.page_size] = tokens

    @property
    def slots(self) -> Tensor:
        """A view, by page and slot: `[pages + 1, page_size, layers, 2, heads, head_dim]`."""
        return self.kv.movedim(3, 1)
