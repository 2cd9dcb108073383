"""Views, and the calls that give a tensor other memory: they change no bytes.

torch's CPU kernels for them look only at sizes and strides, so they serve here too.
"""

# ruff: noqa: ARG001
# The arguments are torch's, whether they matter here or not.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from conformance.simdevice.memory import CPU_KEY, MEMORY, contiguous_strides

aten = torch.ops.aten
VIEWS = (
    aten.as_strided.default,
    aten.view.default,
    aten._reshape_alias.default,
    aten.unfold.default,
    aten.view_as_real.default,
    aten.view_as_complex.default,
    aten.set_.source_Storage_storage_offset,
)
_set = aten.set_.source_Storage_storage_offset


def by_cpu_kernel(op: Any) -> Callable[..., Any]:
    """A kernel that hands over to the CPU kernel of the same operation."""
    return partial(op._handle.redispatch_boxed, CPU_KEY)


def set_to(tensor: Tensor, size: Sequence[int], stride: Sequence[int]) -> None:
    """Give the tensor new memory of this geometry."""
    fresh = MEMORY.empty_strided(size, stride, tensor.dtype)
    _set.redispatch(CPU_KEY, tensor, fresh.untyped_storage(), 0, list(size), list(stride))


def set_storage(tensor: Tensor, storage: torch.UntypedStorage) -> Tensor:
    """`tensor.set_(storage)`: all of it, in one dimension."""
    numel = storage.nbytes() // tensor.element_size()
    return _set.redispatch(CPU_KEY, tensor, storage, 0, [numel], [1])  # type: ignore[no-any-return]  # torch.ops is untyped


def set_tensor(tensor: Tensor, source: Tensor) -> Tensor:
    """`tensor.set_(source)`."""
    storage, offset = source.untyped_storage(), source.storage_offset()
    size, stride = list(source.size()), list(source.stride())
    return _set.redispatch(CPU_KEY, tensor, storage, offset, size, stride)  # type: ignore[no-any-return]  # torch.ops is untyped


def resize_(
    tensor: Tensor, size: Sequence[int], *, memory_format: torch.memory_format | None = None
) -> Tensor:
    """`tensor.resize_(size)`; what it held comes first, as on every device."""
    if tuple(size) == tuple(tensor.shape):
        return tensor
    step = contiguous_strides(size)
    numel = math.prod(size)
    offset, room = tensor.storage_offset(), tensor.untyped_storage().nbytes()
    if (offset + numel) * tensor.element_size() <= room:
        storage = tensor.untyped_storage()
        _set.redispatch(CPU_KEY, tensor, storage, offset, list(size), step)
        return tensor
    held = room // tensor.element_size() - offset
    old = aten.as_strided.default(tensor, [max(held, 0)], [1], offset).detach()
    set_to(tensor, size, step)
    if held > 0:
        aten.as_strided.default(tensor, [held], [1], 0).copy_(old)
    return tensor
