"""One space of ids: its free pages, the owners of each id, and free groups."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from reference_pools.base import check_ids


class Start(NamedTuple):
    """Where the next ids of a request go: slot `slot` of page `page`, or of a fresh page."""

    slot: int = 0
    page: int | None = None


class FreeList:
    """What every allocator is made of. It keeps its books on the host, in plain sight.

    `owners`: int64 `[first + size]`, how many owners each id has; 0 is not in use.
    `free_pages`: page numbers (`id // page_size`). The last is handed out next, so the
    page freed last is reused first: rows are reused soon, and in no sorted order.
    `pending`: pages freed by the open free group, None where no group is open.

    The methods are those of `KVAllocator`. `start`, `has_room` and `take` are the steps of
    `alloc`, for an allocator that must know of two spaces before it takes from one.
    """

    def __init__(
        self, *, size: int, page_size: int, first: int, device: str | torch.device
    ) -> None:
        """`ValueError` for a size that is not a positive number of pages."""
        if size <= 0 or page_size <= 0 or size % page_size:
            raise ValueError(f"size {size} is not a positive multiple of page_size {page_size}")
        self.size = size
        self.page_size = page_size
        self.first = first
        self.device = torch.device(device)
        self.owners = torch.zeros(first + size, dtype=torch.int64)
        self.free_pages: list[int] = []
        self.pending: list[int] | None = None
        self.clear()

    def available(self) -> int:
        return len(self.free_pages) * self.page_size

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        start = self.start(count, held)
        return self.take(count, start) if self.has_room(count, start) else None

    def start(self, count: int, held: Tensor | None) -> Start:
        """Where `alloc(count, held)` begins; raises as it does."""
        if count < 0:
            raise ValueError(f"count {count} is negative")
        if held is None:
            return Start()
        ids = self.check_in_use("held", held)
        last = int(ids[-1]) if len(ids) else -1
        page, slot = divmod(last + 1, self.page_size)
        if not count or not slot:
            return Start()
        self._check_continues(last, page, slot)
        return Start(slot, page)

    def has_room(self, count: int, start: Start) -> bool:
        """Whether `take(count, start)` finds enough free pages."""
        return self._fresh(count, start) <= len(self.free_pages)

    def take(self, count: int, start: Start) -> Tensor:
        """Hand out `count` ids from `start` on; only where `has_room`."""
        begun = [] if start.page is None else [start.page]
        fresh = [self.free_pages.pop() for _ in range(self._fresh(count, start))]
        pages = torch.tensor(begun + fresh, dtype=torch.int64)
        ids = (pages[:, None] * self.page_size + torch.arange(self.page_size)).flatten()
        ids = ids[start.slot : start.slot + count].clone()
        self.owners[ids] = 1
        return ids.to(self.device)

    def retain(self, ids: Tensor) -> None:
        self.owners[self.check_in_use("ids", ids)] += 1

    def free(self, ids: Tensor) -> None:
        rows = self.check_in_use("ids", ids)
        self.owners[rows] -= 1
        pages = list(dict.fromkeys((rows // self.page_size).tolist()))
        used = self.owners.view(-1, self.page_size)[pages].any(1).tolist()
        idle = [page for page, in_use in zip(pages, used, strict=True) if not in_use]
        (self.free_pages if self.pending is None else self.pending).extend(idle)

    def begin_free_group(self) -> None:
        if self.pending is not None:
            raise RuntimeError("a free group is open already; groups do not nest")
        self.pending = []

    def end_free_group(self) -> None:
        if self.pending is None:
            raise RuntimeError("no free group is open")
        self.free_pages += self.pending
        self.pending = None

    def clear(self) -> None:
        self.owners.zero_()
        end = self.first + self.size
        pages = range(self.first // self.page_size, end // self.page_size)
        self.free_pages = list(reversed(pages))
        self.pending = None

    def check_in_use(self, name: str, ids: Tensor) -> Tensor:
        """`ids` as int64 on the host, refused as `KVAllocator` says; `name` is for the error."""
        check_ids(name, ids, self.first, self.first + self.size)
        rows = ids.to("cpu", torch.int64)
        unused = rows[self.owners[rows] == 0]
        if len(unused):
            raise ValueError(
                f"{name} contains {int(unused[0])}, which is not in use: "
                "it was freed before, or never handed out"
            )
        return rows

    def _fresh(self, count: int, start: Start) -> int:
        pages = -(-(start.slot + count) // self.page_size)
        return pages - (start.page is not None)

    def _check_continues(self, last: int, page: int, slot: int) -> None:
        begin = page * self.page_size
        held, rest = self.owners[begin : begin + self.page_size].tensor_split([slot])
        if int(held.max()) > 1:
            raise ValueError(
                f"held ends at {last}, but {begin + int(held.argmax())} of the same page has "
                f"{int(held.max())} owners: only a full page can be shared and continued"
            )
        if rest.any():
            used = begin + slot + int(rest.ne(0).int().argmax())
            raise ValueError(f"held ends at {last}, but {used} of the same page is in use")
