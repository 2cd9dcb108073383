"""The device's memory: tensors of device "sim" over CPU bytes, and who is still alive."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from conformance.simdevice.errors import SimError
from conformance.simdevice.foreign import device_tensor
from conformance.simdevice.poison import PLAIN, poison_, poisoned
from conformance.simdevice.scheduler import SCHEDULER, Scheduler

TOTAL_BYTES = 16 << 30
"""What the device says that it has, where no limit is set."""

CPU_KEY = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_as_strided = torch.ops.aten.as_strided.default
_view_dtype = torch.ops.aten.view.dtype


@dataclass(slots=True, eq=False)
class Block:
    """The bytes of one storage: `whole` is a contiguous CPU tensor over all of them.

    `flats` are one-dimensional views, by dtype; `users` the streams that `record_stream`
    named; `watch` is kept for `device_tensor`.
    """

    whole: Tensor
    nbytes: int
    stream: int
    epoch: int
    watch: object = None
    flats: dict[torch.dtype, Tensor] = field(default_factory=dict)
    users: set[int] = field(default_factory=set)

    def flat(self, dtype: torch.dtype) -> Tensor:
        view = self.flats.get(dtype)
        if view is None:
            view = self.whole.view(-1)
            if dtype is not view.dtype:
                raw = view.view(torch.uint8)
                view = raw[: raw.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
            self.flats[dtype] = view
        return view


class Memory:
    """Every living block by its address, and how many bytes they are."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._blocks: dict[int, Block] = {}
        self._dead: deque[int] = deque()
        scheduler.dead, scheduler.bury = self._dead, self.bury
        self.reset(None)

    def reset(self, limit: int | None) -> None:
        """Count from 0, with at most `limit` bytes. Older tensors count no more."""
        self.bury()
        self.allocated = self.peak = 0
        self.limit = limit

    def empty(self, size: Sequence[int], dtype: torch.dtype) -> Tensor:
        """A contiguous, poisoned tensor. `torch.OutOfMemoryError` over the limit."""
        return self.new(size, dtype)[0]

    def new(self, size: Sequence[int], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """As `empty`, and its CPU view."""
        numel = 1
        for extent in size:
            numel *= extent
        nbytes = numel * dtype.itemsize
        if self._dead:
            self.bury()
        self._scheduler.check()
        if self.limit is not None and self.allocated + nbytes > self.limit:
            raise torch.OutOfMemoryError(
                f"sim out of memory: tried to allocate {nbytes} bytes, "
                f"{self.allocated} of {self.limit} are in use"
            )
        if numel and dtype in PLAIN:
            whole = poisoned(size, dtype)
            return self._watched(whole, nbytes), whole
        return self._new_by_bytes(size, dtype, nbytes)

    def adopt(self, value: Tensor) -> Tensor:
        """A tensor that holds what `value` does, a CPU tensor whose storage nobody else has;
        its bytes are taken over if they can be."""
        plain = value.numel() and value.dtype in PLAIN and value.is_contiguous()
        if plain and value.nbytes == value.untyped_storage().nbytes():
            return self._watched(value, value.nbytes)
        made = self.empty_strided(value.shape, value.stride(), value.dtype)
        with self._scheduler.quiet():
            self.cpu_view(made).copy_(value)
        return made

    def empty_strided(
        self, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype
    ) -> Tensor:
        """As `empty`, with the given strides."""
        if list(stride) == contiguous_strides(size) or 0 in size:
            return self.new(size, dtype)[0]
        reach = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        whole = self.empty((reach,), dtype)
        return _as_strided.redispatch(CPU_KEY, whole, list(size), list(stride), 0)  # type: ignore[no-any-return]  # torch.ops is untyped

    def cpu_view(self, tensor: Tensor) -> Tensor:
        """The same bytes as a CPU tensor. Only a queued operation may look at them."""
        dtype, offset = tensor.dtype, int(tensor.storage_offset())
        size = tensor.shape
        block = self._blocks.get(tensor.data_ptr() - offset * dtype.itemsize)
        if block is None:
            return self._cpu_view_of_none(tensor)
        whole = block.whole
        if not offset and whole.dtype is dtype and whole.shape == size and tensor.is_contiguous():
            return whole
        return block.flat(dtype).as_strided(size, tensor.stride(), offset)

    def block(self, tensor: Tensor) -> Block | None:
        return self._blocks.get(tensor.untyped_storage().data_ptr())

    def bury(self) -> None:
        """Give back what has died. Its bytes are poisoned in the order of its own stream,
        where the next owner of the memory would write."""
        scheduler = self._scheduler
        with scheduler.lock:
            while self._dead:
                block = self._blocks.pop(self._dead.popleft())
                if block.epoch == scheduler.epoch:
                    self.allocated -= block.nbytes
                    # What the own stream has queued comes first in any case.
                    if len(scheduler.queues) > 1:
                        self._poison(block)

    def _new_by_bytes(
        self, size: Sequence[int], dtype: torch.dtype, nbytes: int
    ) -> tuple[Tensor, Tensor]:
        """For no elements, and for dtypes that DLPack does not have everywhere."""
        whole = poisoned(size, dtype)
        raw = whole.view(-1).view(torch.uint8) if nbytes else poisoned((1,), torch.uint8)
        typed = _view_dtype(self._watched(raw, nbytes), dtype)
        made = _as_strided.redispatch(CPU_KEY, typed, list(size), contiguous_strides(size), 0)
        return made, whole

    def _watched(self, whole: Tensor, nbytes: int) -> Tensor:
        """The device's tensor over the bytes of `whole`, of which it has `nbytes`: all or none.
        They are given back when it dies."""
        address, dead = whole.data_ptr(), self._dead
        scheduler = self._scheduler
        with scheduler.lock:
            made, watch = device_tensor(whole, lambda _: dead.append(address), empty=not nbytes)
            self._blocks[address] = Block(
                whole, nbytes, scheduler.current(), scheduler.epoch, watch
            )
            self.allocated += nbytes
            if self.allocated > self.peak:
                self.peak = self.allocated
        return made

    def _cpu_view_of_none(self, tensor: Tensor) -> Tensor:
        if tensor.numel():
            raise SimError(
                f"a tensor of shape {tuple(tensor.shape)} on {tensor.device} does not lie in "
                "the memory of sim"
            )
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)

    def _poison(self, block: Block) -> None:
        others = [q for q in self._scheduler.queues.values() if q.ops and q.stream != block.stream]
        if others and not self._scheduler.error:
            whole = block.whole
            self._scheduler.enqueue_free(block.stream, lambda: poison_(whole), block.users, whole)


def contiguous_strides(size: Sequence[int]) -> list[int]:
    strides, step = [0] * len(size), 1
    for axis in range(len(size) - 1, -1, -1):
        strides[axis] = step
        step *= max(size[axis], 1)
    return strides


MEMORY = Memory(SCHEDULER)
