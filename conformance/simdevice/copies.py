"""Copies between host and device: which are late, and which block.

As on CUDA. Pinned host memory and `non_blocking`: the copy is queued, and reads or writes the
host bytes when it runs. Pageable memory: a copy to the device has taken the bytes when the
call returns, a copy to the host is finished. With `pageable="late"` pageable memory is treated
as pinned, stricter than CUDA is.
"""

# ruff: noqa: ARG001
# The arguments are torch's, whether they matter here or not.

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from conformance.simdevice.memory import MEMORY, contiguous_strides
from conformance.simdevice.pinned import PINNED, empty_pinned, is_pinned
from conformance.simdevice.poison import poison_
from conformance.simdevice.scheduler import SCHEDULER


class Rules:
    """What `reset` sets: whether pageable memory counts as pinned; and which host storages
    a queued copy has yet to read, by address."""

    def __init__(self) -> None:
        self.reset("cuda")

    def reset(self, pageable: str) -> None:
        if pageable not in ("cuda", "late"):
            raise ValueError(f"pageable is 'cuda' or 'late', not {pageable!r}")
        self.late_pageable = pageable == "late"
        self.to_be_read: dict[int, int] = {}


RULES = Rules()


def is_sim(tensor: Tensor) -> bool:
    # Far cheaper than to ask for the device; other devices than these two do not come here.
    return not tensor.is_cpu


def copy_(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """`target.copy_(source)` where one of them, or both, are on the device."""
    if source.shape != target.shape:
        source = source.expand(target.shape)
    if not is_sim(target):
        return to_host(target, source, non_blocking)
    if not is_sim(source):
        return to_device(target, source, non_blocking)
    here, there = MEMORY.cpu_view(target), MEMORY.cpu_view(source)
    SCHEDULER.enqueue("copy_", partial(here.copy_, there), (here,), (there,))
    return target


def to_host(target: Tensor, source: Tensor, non_blocking: bool, fresh: bool = False) -> Tensor:
    """Copy from the device; `fresh` target memory was made for this copy."""
    there, host = MEMORY.cpu_view(source), target.detach()
    late = non_blocking and (fresh or RULES.late_pageable or is_pinned(host))
    if late:
        SCHEDULER.check()
        _poison(host)
    SCHEDULER.enqueue("copy to host", partial(host.copy_, there), (host,), (there,))
    if not late:
        SCHEDULER.finish_stream(SCHEDULER.current())
    return target


def to_device(target: Tensor, source: Tensor, non_blocking: bool) -> Tensor:
    """Copy from the host."""
    _fill_from_host(MEMORY.cpu_view(target), source, non_blocking)
    return target


def _fill_from_host(here: Tensor, source: Tensor, non_blocking: bool) -> None:
    """As `to_device`, by the CPU view of the target."""
    address = source.untyped_storage().data_ptr()
    if non_blocking and (RULES.late_pageable or address in PINNED):
        host, to_be_read = source.detach(), RULES.to_be_read
        to_be_read[address] = to_be_read.get(address, 0) + 1

        def run() -> None:
            here.copy_(host)
            to_be_read[address] -= 1

        SCHEDULER.enqueue("copy to device", run, (here,), (host,))
        return
    SCHEDULER.enqueue("copy to device", partial(here.copy_, source.detach().clone()), (here,))
    if not non_blocking:
        SCHEDULER.finish_stream(SCHEDULER.current())


def to_copy(
    source: Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
) -> Tensor:
    """`aten::_to_copy`: what `.to`, `.cpu` and `.float` make, in new memory."""
    dtype = dtype or source.dtype
    stride = copied_strides(source, memory_format)
    target = source.device if device is None else torch.device(device)
    if target.type == "sim":
        if stride is None and source.is_cpu:
            made, here = MEMORY.new(source.shape, dtype)
            _fill_from_host(here, source, non_blocking)
            return made
        strides = contiguous_strides(source.shape) if stride is None else stride
        return copy_(MEMORY.empty_strided(source.shape, strides, dtype), source, non_blocking)
    if target.type == "meta":
        return torch.empty_strided(source.shape, source.stride(), dtype=dtype, device=target)
    if non_blocking:
        return to_host(empty_pinned(source.shape, dtype, stride), source, True, fresh=True)
    if stride is None:
        return to_host(torch.empty(source.shape, dtype=dtype), source, False, fresh=True)
    return to_host(torch.empty_strided(source.shape, stride, dtype=dtype), source, False)


def copied_strides(
    source: Tensor, memory_format: torch.memory_format | None
) -> tuple[int, ...] | None:
    """The strides of a copy of `source`; None for a contiguous one."""
    if memory_format in (None, torch.preserve_format):
        if source.is_contiguous():
            return None
        like = torch.empty_strided(source.shape, source.stride(), device="meta")
        return torch.empty_like(like, memory_format=torch.preserve_format).stride()
    if memory_format is torch.contiguous_format:
        return None
    return torch.empty(source.shape, device="meta", memory_format=memory_format).stride()


def _poison(host: Tensor) -> None:
    """Fill what a copy will write, so that whoever reads it too early sees that.

    Not where a queued copy has yet to read: on one stream that is legal, and old bytes must
    do as the sign.
    """
    if not RULES.to_be_read.get(host.untyped_storage().data_ptr()):
        poison_(host)
