"""Tensors over given bytes, of any device type, that tell when their storage dies.

torch takes them in through DLPack, in a structure that torch itself has made for a CPU tensor,
with the device type changed. The end is told by a weak reference: torch drops the object
behind the CPU tensor with its storage, also while an error is on its way through C++, where
calling Python would lose the error.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor

PRIVATE_USE = 12
"""DLPack's kDLExtDev, which torch reads as PrivateUse1."""

_FIELDS = ctypes.c_int64 * 4
"""What follows the data pointer in `DLManagedTensor`: the device's type and number; the rank
and the dtype; pointers to the shape and to the strides, 0 for a contiguous tensor."""

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_new_capsule: Any = torch._C._to_dlpack
_from_capsule: Any = torch._C._from_dlpack

Died = Callable[[object], object]
"""Called when the last tensor is gone, from whatever thread; the argument means nothing."""


@cache
def _bytes_type(count: int) -> Any:
    return ctypes.c_ubyte * count


@lru_cache(maxsize=4096)
def _shape(size: tuple[int, ...]) -> Any:
    """The sizes as C has them, one more than none."""
    return (ctypes.c_int64 * (len(size) + 1))(*size)


def _flat_over(whole: Tensor, died: Died) -> tuple[Tensor, object]:
    owner = _bytes_type(whole.nbytes).from_address(whole.data_ptr())
    return torch.frombuffer(owner, dtype=whole.dtype), weakref.ref(owner, died)


def host_tensor(whole: Tensor, died: Died) -> tuple[Tensor, object]:
    """A CPU tensor over the same bytes as `whole`, contiguous and not empty, which must stay.

    `died` is called when the last tensor over them, but for `whole`, is gone; keep the
    second result until then.
    """
    flat, watch = _flat_over(whole, died)
    return flat.view(whole.shape), watch


def device_tensor(whole: Tensor, died: Died, *, empty: bool = False) -> tuple[Tensor, object]:
    """As `host_tensor`, on the device that holds PrivateUse1. With `empty` the result has no
    element, and `whole` is the one byte that is there for torch to own."""
    flat, watch = _flat_over(whole, died)
    size = (0,) if empty else tuple(whole.shape)
    capsule, shape = _new_capsule(flat), _shape(size)
    fields = _FIELDS.from_address(_pointer(capsule, b"dltensor") + 8)
    fields[0] = PRIVATE_USE
    fields[1] = fields[1] & ~0xFFFFFFFF | len(size)
    fields[2], fields[3] = ctypes.addressof(shape), 0
    # torch reads the shape here, and only here.
    return _from_capsule(capsule), watch
