"""The oracle: what every row of every buffer must hold, and whose bytes a row holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from conformance.buffers import Buffer, Unit
from conformance.fingerprints import fingerprints
from conformance.programs import Rows


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells that one request occupies, as ids of each unit; `tail` are the slots behind
    its last token in that token's page, which a pool may restore with the page; `partial`
    are the places in `page` of pages that it occupies in part."""

    token: Tensor
    page: Tensor
    state: Tensor
    tail: Tensor
    partial: Tensor

    def of(self, unit: Unit) -> Tensor:
        """The ids `[n]` of this unit."""
        return self.token if unit == "token" else self.page if unit == "page" else self.state


@dataclass(frozen=True, slots=True)
class Saved:
    """What a copy holds, buffer by buffer: its cells, and the tail of its last page."""

    cells: tuple[Tensor, ...]
    tails: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A cell that does not hold what it must; `inside` the index set that was reloaded."""

    buffer: int
    layer: int
    cell: int
    inside: bool
    others: int


@dataclass(frozen=True, slots=True)
class Image:
    """What the rows of one buffer must hold: uint8 `[layers, n_rows, row_bytes]`."""

    buffer: Buffer
    bytes: Tensor
    layers: tuple[Tensor, ...]

    @classmethod
    def of(cls, buffer: Buffer) -> Image:
        """An image with nothing in it yet."""
        image = buffer.rows[0].new_empty((len(buffer.rows), *buffer.rows[0].shape))
        return cls(buffer, image, image.unbind())

    def gather(self, ids: Tensor) -> Tensor:
        """The bytes of cells `ids` `[n]`: uint8 `[layers, n, width]`."""
        return self.bytes[(slice(None), *self.buffer.at(ids))]

    def scatter(self, ids: Tensor, payload: Tensor) -> None:
        self.bytes[(slice(None), *self.buffer.at(ids))] = payload


@dataclass(slots=True)
class Model:
    """Expected bytes beside the real ones; both are written by the same calls."""

    actual: Sequence[Buffer]
    page_size: int
    paged: bool
    expected: list[Image] = field(default_factory=list)
    log: list[dict[tuple[Unit, int], str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.expected = [Image.of(buffer) for buffer in self.actual]
        self.overwrite()

    @property
    def device(self) -> torch.device:
        return self.actual[0].rows[0].device

    def cells(self, rows: Rows, state: int | None) -> Cells:
        """The cells of the token ids `rows` and of one state id."""
        return _cells(rows, state, self.page_size, self.paged, self.device)

    def overwrite(self) -> None:
        """Fill every cell, in the pool and here, with bytes of nobody."""
        for number, image in enumerate(self.expected):
            payload = self._payload(number, len(self.log))
            if image.buffer.columns is None:
                image.bytes.copy_(payload)
            else:
                rows = payload.reshape(image.bytes.shape)
                image.bytes[:, :, image.buffer.columns.flatten()] = rows
            image.buffer.fill(image.bytes)
        self.log.append({})

    def write(self, request: str, rows: Rows, state: int | None) -> None:
        """Give `request` new bytes in its cells, in the pool and here."""
        cells = self.cells(rows, state)
        for number, image in enumerate(self.expected):
            ids = cells.of(image.buffer.addressed_by)
            if ids.numel():
                payload = self._payload(number, len(self.log))[:, ids]
                image.buffer.scatter(ids, payload)
                image.scatter(ids, payload)
        owners: dict[tuple[Unit, int], str] = {
            ("token", row): f"token {token} of {request}" for token, row in enumerate(rows)
        }
        owners |= {("page", row // self.page_size): f"a page of {request}" for row in rows}
        owners |= {("state", state): f"the state of {request}"} if state is not None else {}
        self.log.append(owners)

    def save(self, cells: Cells) -> Saved:
        """What a copy of `cells` must hold."""
        has_tail = cells.tail.numel() > 0
        return Saved(
            tuple(image.gather(cells.of(image.buffer.addressed_by)) for image in self.expected),
            tuple(
                image.gather(cells.tail)
                if has_tail and image.buffer.addressed_by == "token"
                else cells.tail
                for image in self.expected
            ),
        )

    def restore(self, saved: Saved, cells: Cells) -> None:
        """Expect `saved` in `cells`; the tail may hold what it held or what was saved, and
        so may each byte of a page occupied in part, where its slots are not known."""
        for number, image in enumerate(self.expected):
            ids = cells.of(image.buffer.addressed_by)
            if image.buffer.addressed_by == "page" and cells.partial.numel():
                _restore_pages(image, ids, cells.partial, saved.cells[number])
            elif ids.numel():
                image.scatter(ids, saved.cells[number])
            if cells.tail.numel() and image.buffer.addressed_by == "token":
                _accept_tail(image, cells.tail, saved.tails[number])

    def first_difference(self, cells: Cells | None = None) -> Difference | None:
        """The first cell that is wrong: payload before companions before state, and cells
        inside the index set before those outside."""
        for number, image in enumerate(self.expected):
            for is_, must in zip(image.buffer.rows, image.layers, strict=True):
                if not torch.equal(is_, must):
                    return self._locate(number, cells)
        return None

    def _locate(self, number: int, cells: Cells | None) -> Difference:
        actual, image = self.actual[number], self.expected[number]
        every = torch.arange(actual.cells, device=self.device)
        wrong = (actual.gather(every) != image.gather(every)).any(-1)
        ids = cells.of(actual.addressed_by) if cells is not None else every[:0]
        within = torch.isin(every, ids) & wrong.any(0)
        inside = bool(within.any())
        candidates = wrong & within if inside else wrong
        layer, cell = (int(i) for i in candidates.nonzero()[0])
        return Difference(number, layer, cell, inside, int(wrong.sum()) - 1)

    def adopt(self, number: int) -> None:
        """Expect what buffer `number` holds now."""
        image = self.expected[number]
        for is_, must in zip(image.buffer.rows, image.layers, strict=True):
            must.copy_(is_)

    def describe(self, found: Difference) -> str:
        """The difference in words: where, whose bytes it holds, whose it should hold."""
        actual = self.actual[found.buffer]
        cell = torch.tensor([found.cell], device=self.device)
        is_ = actual.gather(cell)[found.layer, 0]
        must = self.expected[found.buffer].gather(cell)[found.layer, 0]
        others = f" (and {found.others} more cells of {actual.name})" if found.others else ""
        return (
            f"{actual.addressed_by} row {found.cell} of {actual.name}, "
            f"layer {actual.first_layer + found.layer}: "
            f"holds {self._whose(is_, must)}, expected {self._whose(must, must)}{others}"
        )

    def _whose(self, content: Tensor, must: Tensor) -> str:
        for write in reversed(range(len(self.log))):
            for number, buffer in enumerate(self.actual):
                if buffer.width != len(content):
                    continue
                match = (self._payload(number, write) == content).all(-1).nonzero()
                if len(match):
                    layer, cell = (int(i) for i in match[0])
                    return self._owner(write, number, layer, cell)
        agree = int((content == must).int().cumprod(0).sum())
        if agree:
            return f"the first {agree} of its {len(must)} bytes, then bytes that nobody wrote"
        return "bytes that nobody wrote"

    def _owner(self, write: int, number: int, layer: int, cell: int) -> str:
        buffer = self.actual[number]
        place = f"{buffer.name}, layer {buffer.first_layer + layer}, row {cell}, write {write}"
        owner = self.log[write].get((buffer.addressed_by, cell), "bytes of nobody")
        return f"{owner} ({place})"

    def _payload(self, number: int, write: int) -> Tensor:
        buffer = self.actual[number]
        return fingerprints(
            number, len(buffer.rows), buffer.cells, buffer.width, write, self.device
        )


@lru_cache(maxsize=4096)
def _cells(
    rows: Rows, state: int | None, page_size: int, paged: bool, device: torch.device
) -> Cells:
    def ids(values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=device)

    occupied = Counter(row // page_size for row in rows)
    pages = list(occupied)
    partial = [at for at, page in enumerate(pages) if occupied[page] < page_size]
    tail: Sequence[int] = ()
    if paged and rows:
        tail = range(rows[-1] + 1, (pages[-1] + 1) * page_size)
    states = [] if state is None else [state]
    return Cells(ids(rows), ids(pages), ids(states), ids(tail), ids(partial))


def _restore_pages(image: Image, pages: Tensor, partial: Tensor, saved: Tensor) -> None:
    is_, old = image.buffer.gather(pages[partial]), image.gather(pages[partial])
    image.scatter(pages, saved)
    must = saved[:, partial]
    image.scatter(pages[partial], torch.where((is_ == old) | (is_ == must), is_, must))


def _accept_tail(image: Image, tail: Tensor, saved: Tensor) -> None:
    is_ = image.buffer.gather(tail)
    if saved.shape == is_.shape:
        restored = (is_ == saved).all(-1, keepdim=True)
        image.scatter(tail, torch.where(restored, is_, image.gather(tail)))
