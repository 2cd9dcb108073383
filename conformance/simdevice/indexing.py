"""Reading and writing by index: the kernels behind `rows[ids]` and `rows[ids] = values`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from conformance.simdevice.copies import is_sim
from conformance.simdevice.fallback import different_devices, fallback
from conformance.simdevice.memory import MEMORY
from conformance.simdevice.plans import plan_of
from conformance.simdevice.scheduler import SCHEDULER
from conformance.simdevice.shapes import infer

aten = torch.ops.aten
_INTEGERS = (torch.int64, torch.int32)
_MASKS = (torch.bool, torch.uint8)
Indices = Sequence[Tensor | None]
"""Integer or mask tensors, one an axis (a mask: one for all its axes); None for all of it."""


def index(tensor: Tensor, indices: Indices) -> Tensor:
    """`aten::index.Tensor`. A mask is read when this is called, as on CUDA."""
    if any(each is not None and each.dtype in _MASKS for each in indices):
        indices = _without_masks(tensor, indices)
    size = _rows_size(tensor, indices)
    if size is None or not tensor.is_contiguous():
        return _any_index(tensor, indices)
    ids = indices[0]
    assert ids is not None
    out, target = MEMORY.new(size, tensor.dtype)
    rows, chosen = MEMORY.cpu_view(tensor), _on_host(ids)
    SCHEDULER.enqueue("index", partial(_gather, rows, chosen, target), (target,), (rows, chosen))
    return out


def index_put_(
    tensor: Tensor,
    indices: Indices,
    values: Tensor,
    accumulate: bool = False,
    unsafe: bool = False,  # noqa: ARG001  (torch passes it)
) -> Tensor:
    """`aten::_index_put_impl_`. A mask is read when this is called, unless it selects where
    one value goes, as on CUDA."""
    _check_device("index_put_", tensor, values)
    if values.numel() != 1 or accumulate:
        indices = _without_masks(tensor, indices)
    _check_values(tensor, indices, values)
    view, given = MEMORY.cpu_view(tensor), _on_host(values)
    host = [None if each is None else _on_host(each) for each in indices]
    # The method is cheaper, and takes no None.
    used = [each for each in host if each is not None]
    by_method = len(used) == len(host)
    put = view.index_put_ if by_method else partial(aten.index_put_.default, view)
    run = partial(put, host, given, accumulate)
    reads = (given, *used)
    SCHEDULER.enqueue("index_put_", run, (view,), reads)
    return tensor


def _gather(rows: Tensor, ids: Tensor, out: Tensor) -> None:
    """`out = rows[ids]`; far cheaper by `index_select`, which takes no negative index."""
    if ids.dim() == 1:
        try:
            torch.index_select(rows, 0, ids, out=out)
        except (IndexError, RuntimeError):
            pass
        else:
            return
    aten.index.Tensor_out(rows, [ids], out=out)


def _on_host(tensor: Tensor) -> Tensor:
    """Its CPU view; a host tensor is taken by value."""
    return MEMORY.cpu_view(tensor) if is_sim(tensor) else tensor.clone()


def _check_device(name: str, tensor: Tensor, values: Tensor) -> None:
    if not is_sim(tensor):
        raise different_devices(name, tensor.device, "sim:0")
    if values.dim() and not is_sim(values):
        raise different_devices(name, "sim:0", values.device)


def _rows_size(tensor: Tensor, indices: Indices) -> torch.Size | None:
    """The size of `tensor[indices]` where that is one index of whole rows; else None."""
    ids = indices[0] if len(indices) == 1 else None
    if ids is None or ids.dtype not in _INTEGERS or not is_sim(tensor):
        return None
    if not (tensor.numel() and ids.numel()):
        return None
    return ids.shape + tensor.shape[1:]


def _any_index(tensor: Tensor, indices: Indices) -> Tensor:
    if not is_sim(tensor):
        raise different_devices("index", tensor.device, "sim:0")
    if any(each is not None and each.dtype in _MASKS and not each.dim() for each in indices):
        return fallback(aten.index.Tensor, tensor, list(indices))  # type: ignore[no-any-return]  # torch.ops is untyped
    out = MEMORY.empty((0,), tensor.dtype)
    return fallback(aten.index.Tensor_out, tensor, list(indices), out=out)  # type: ignore[no-any-return]  # torch.ops is untyped


def _without_masks(tensor: Tensor, indices: Indices) -> list[Tensor | None]:
    """The same indices with each mask as the integers where it is true; this waits. A mask
    of no dimension stays."""
    integers: list[Tensor | None] = []
    for each in indices:
        if each is None or each.dtype not in _MASKS or not each.dim():
            integers.append(each)
            continue
        axis = len(integers)
        masked = tensor.shape[axis : axis + each.dim()]
        if each.shape != masked:
            raise IndexError(
                f"The shape of the mask {list(each.shape)} at index {axis} does not match "
                f"the shape of the indexed tensor {list(tensor.shape)} at index {axis}"
            )
        if is_sim(each):
            SCHEDULER.finish_stream(SCHEDULER.current())
        integers += _on_host(each).nonzero().unbind(1)
    return integers


def _check_values(tensor: Tensor, indices: Indices, values: Tensor) -> None:
    """Raise at the call, as torch does, what the queued operation would raise when it runs."""
    if values.dtype != tensor.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{tensor.dtype} for the destination and {values.dtype} for the source."
        )
    size = _rows_size(tensor, indices)
    if size is None or values.shape != size:
        size = size or _indexed_size(tensor, indices)
        if size is not None and not _broadcasts(values.shape, size):
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(values.shape)} cannot be "
                f"broadcast to indexing result of shape {list(size)}"
            )


def _indexed_size(tensor: Tensor, indices: Indices) -> torch.Size | None:
    op = aten.index.Tensor_out
    if any(each is not None and each.dtype in _MASKS for each in indices):
        return None
    out = {"out": tensor}
    shapes = infer(plan_of(op), op, (tensor, list(indices)), out)
    return None if shapes is None else shapes[0][0]


def _broadcasts(size: torch.Size, wanted: torch.Size) -> bool:
    while size and len(size) > len(wanted) and size[0] == 1:
        size = size[1:]
    if len(size) > len(wanted):
        return False
    return all(n in (1, m) for n, m in zip(reversed(size), reversed(wanted), strict=False))
