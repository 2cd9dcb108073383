"""MHA, GQA and MQA: a key and a value per token and layer."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from reference_pools.rows import RowPool


class TokenPool(RowPool):
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
