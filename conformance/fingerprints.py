"""Bytes that say where they belong: which buffer, layer, row and write."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

# Odd 64-bit constants of splitmix64 (Steele, Lea and Flood, 2014), as signed integers.
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX_1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_MIX_2 = 0x94D049BB133111EB - (1 << 64)


@lru_cache(maxsize=2048)
def fingerprints(
    buffer: int, layers: int, rows: int, width: int, write: int, device: torch.device
) -> Tensor:
    """uint8 `[layers, rows, width]` on `device`: the bytes of write number `write`.

    Cell `[l, r]` is a hash of (buffer, l, r, write), so two cells agree in all of their
    bytes with probability `256 ** -width`. The result is shared: do not write to it.
    """
    cells = torch.arange(layers * rows, dtype=torch.int64).reshape(layers, rows, 1)
    seed = (buffer << 48) + (write << 24) + cells
    words = -(-width // 8)
    mixed = _splitmix(_splitmix(seed) + torch.arange(words) * _GOLDEN)
    return mixed.view(torch.uint8)[..., :width].contiguous().to(device)


def _splitmix(x: Tensor) -> Tensor:
    x = x + _GOLDEN
    x = (x ^ (x >> 30)) * _MIX_1
    x = (x ^ (x >> 27)) * _MIX_2
    return x ^ (x >> 31)
