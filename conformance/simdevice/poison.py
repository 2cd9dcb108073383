"""Values that stand in bytes which nobody has written yet, or which are no longer anyone's.

NaN in floats; in integers the byte 0xA5, over and over, which as an index is out of bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

BYTE, NAN_BYTE = 0xA5, 0xFF
"""All ones is NaN in every float format."""

_NAN = float("nan")
VALUES: dict[torch.dtype, float | complex | int] = {
    torch.uint8: 0xA5,
    torch.uint16: 0xA5A5,
    torch.uint32: 0xA5A5A5A5,
    torch.uint64: 0xA5A5A5A5A5A5A5A5,
    torch.int8: 0xA5 - (1 << 8),
    torch.int16: 0xA5A5 - (1 << 16),
    torch.int32: 0xA5A5A5A5 - (1 << 32),
    torch.int64: 0xA5A5A5A5A5A5A5A5 - (1 << 64),
    torch.float16: _NAN,
    torch.bfloat16: _NAN,
    torch.float32: _NAN,
    torch.float64: _NAN,
    torch.complex64: complex(_NAN, _NAN),
    torch.complex128: complex(_NAN, _NAN),
}
"""By dtype; a dtype that is not here is filled byte by byte."""
PLAIN = frozenset({*VALUES, torch.bool})
"""What goes through DLPack on every supported torch."""
_empty, _full = torch.empty, torch.full
"""Not those that `shims` puts in their place."""


def poisoned(size: Sequence[int], dtype: torch.dtype) -> Tensor:
    """A new contiguous CPU tensor, full of it."""
    value = VALUES.get(dtype)
    if value is not None:
        return _full(size, value, dtype=dtype)
    if dtype is torch.bool:
        return _full(size, BYTE, dtype=torch.uint8).view(dtype)
    return poison_(_empty(size, dtype=dtype))


def poison_(tensor: Tensor) -> Tensor:
    """Fill a CPU tensor."""
    value = VALUES.get(tensor.dtype)
    if value is not None:
        return tensor.fill_(value)
    tensor.view(torch.uint8).fill_(NAN_BYTE if tensor.is_floating_point() else BYTE)
    return tensor
