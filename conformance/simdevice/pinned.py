"""Page-locked host memory: plain CPU bytes whose addresses are known while they live."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from conformance.simdevice.foreign import host_tensor
from conformance.simdevice.poison import poisoned

PINNED: dict[int, tuple[Tensor, object]] = {}
"""By the address: the bytes, and what watches for their end."""


def empty_pinned(
    size: Sequence[int], dtype: torch.dtype, stride: Sequence[int] | None = None
) -> Tensor:
    """A poisoned pinned CPU tensor, contiguous unless `stride` is given."""
    if 0 in size:
        return torch.empty(size, dtype=dtype)
    if stride is None:
        return pinned_over(poisoned(size, dtype))
    reach = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    return empty_pinned((reach,), dtype).as_strided(tuple(size), tuple(stride))


def pinned_over(whole: Tensor) -> Tensor:
    """A pinned tensor over the bytes of `whole`, contiguous, whose storage nobody else has."""
    if not whole.numel():
        return whole
    address = whole.data_ptr()
    made, watch = host_tensor(whole, lambda _: PINNED.pop(address))
    PINNED[address] = whole, watch
    return made


def is_pinned(tensor: Tensor) -> bool:
    return tensor.untyped_storage().data_ptr() in PINNED
