"""Quantized keys and values: packed payload, and a scale for each block of elements."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from reference_pools.rows import RowPool

BLOCK = 16
"""Elements of one head that share a scale (NVFP4)."""


class QuantizedPool(RowPool):
    """`k` is uint8 `[rows, heads, head_dim * bits / 8]` and `k_scale` is uint8
    `[rows, heads, head_dim / 16]` in each layer; `v` and `v_scale` likewise.

    With 8 bits a byte is one fp8 element, with 4 bits it is two fp4 elements. A scale is
    one byte, e4m3 or e8m0. Payload without its scales is garbage, so all four travel and
    move together (sglang 15108, 35888). `dtype` is what rows are dequantized to; the other
    arguments are those of `KVPool`.

    Raises `ValueError` for other bits, or a head dim that is not a multiple of 16.
    """

    def __init__(
        self,
        *,
        bits: int,
        heads: int,
        head_dim: int,
        v_head_dim: int | None = None,
        **geometry: Any,
    ) -> None:
        super().__init__(**geometry)
        if bits not in (4, 8):
            raise ValueError(f"bits must be 4 or 8, got {bits}")
        self.bits = bits
        self.store_dtype = torch.uint8
        self.k, self.k_scale = self._quantized(heads, head_dim)
        self.v, self.v_scale = self._quantized(
            heads, head_dim if v_head_dim is None else v_head_dim
        )

    def buffers(self) -> dict[str, list[Tensor]]:
        return {"k": self.k, "v": self.v, "k_scale": self.k_scale, "v_scale": self.v_scale}

    def _quantized(self, heads: int, head_dim: int) -> tuple[list[Tensor], list[Tensor]]:
        """Payload and scales of one kind."""
        if head_dim % BLOCK:
            raise ValueError(
                f"head dim {head_dim} is not a multiple of {BLOCK}, the elements that share a scale"
            )
        payload = self.allocate(heads, head_dim * self.bits // 8)
        return payload, self.allocate(heads, head_dim // BLOCK)
