"""Attention whose values are read from its keys: a key per token and layer, and no value."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from reference_pools.rows import RowPool


class KeyOnlyPool(RowPool):
    """`k` is `[rows, heads, head_dim]` in each layer; there is no `v`.

    The other arguments are those of `KVPool`.
    """

    def __init__(self, *, heads: int, head_dim: int, **geometry: Any) -> None:
        super().__init__(**geometry)
        self.k = self.allocate(heads, head_dim)

    def buffers(self) -> dict[str, list[Tensor]]:
        return {"k": self.k}
