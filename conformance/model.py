"""The oracle: what every row of every buffer must hold, and whose bytes a row holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from conformance.buffers import Buffer
from conformance.cells import Cells, Units, cells_of
from conformance.fingerprints import fingerprints
from conformance.step_text import Rows

NOBODY = "bytes of nobody"


@dataclass(frozen=True, slots=True)
class Saved:
    """What a copy holds, buffer by buffer: its cells, the tail of its last page, and, where
    a buffer holds only some of the tokens, which of them."""

    cells: tuple[Tensor, ...]
    tails: tuple[Tensor, ...]
    held: tuple[Tensor | None, ...]


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

    def places(self, cells: Cells) -> tuple[Tensor, Tensor | None]:
        """The cells here of what `cells` names, and for which of it there is one (bool `[n]`;
        None: for all)."""
        ids = cells.of(self.buffer.addressed_by)
        if self.buffer.locate is None:
            return ids, None
        places = self.buffer.locate(ids)
        held = places >= 0
        return places[held], held

    def held(self, cells: Cells) -> tuple[Tensor, Tensor | None]:
        """The bytes of `cells` here, and for which of them there are any."""
        places, held = self.places(cells)
        return self.gather(places), held

    @property
    def has_tail(self) -> bool:
        """Whether the slots behind the last token of a page are known to be such."""
        return self.buffer.addressed_by == "token" and self.buffer.locate is None


@dataclass(frozen=True, slots=True)
class Written:
    """One write of a request: tokens from `first_token` on, at `rows`. `located` has, for
    each buffer by number whose cells are not the ids, the cells and which tokens have one."""

    request: str
    rows: Rows
    state: int | None
    first_token: int
    located: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def owner(self, number: int, buffer: Buffer, cell: int) -> str:
        """Whose bytes this write left in a cell of buffer `number`."""
        if buffer.addressed_by == "state":
            return f"the state of {self.request}"
        if buffer.addressed_by == "page":
            return f"a page of {self.request}"
        cells = self.cells(number)
        if cell not in cells:  # rows of a few bytes agree by chance
            return NOBODY
        return f"token {self.first_token + cells.index(cell)} of {self.request}"

    def cells(self, number: int) -> Sequence[int]:
        """The cell of each token in buffer `number`, -1 for none."""
        if number not in self.located:
            return self.rows
        places, held = self.located[number]
        cells = torch.full(held.shape, -1)
        cells[held.cpu()] = places.cpu()
        return cells.tolist()


@dataclass(slots=True)
class Model:
    """Expected bytes beside the real ones; both are written by the same calls."""

    actual: Sequence[Buffer]
    page_size: int
    paged: bool
    expected: list[Image] = field(default_factory=list)
    shards: list[list[int]] = field(default_factory=list)
    settle: Callable[[], None] = lambda: None
    units: Units = "tokens"
    log: list[Written | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.expected = [Image.of(buffer) for buffer in self.actual]
        self.shards = _shards(self.actual)
        if self.paged:
            self.units = "runs"
        elif any(buffer.unit == "page" for buffer in self.actual):
            self.units = "pages"
        self.overwrite()

    @property
    def device(self) -> torch.device:
        return self.actual[0].rows[0].device

    def cells(self, rows: Rows, state: int | None) -> Cells:
        """The cells of the token ids `rows` and of one state id."""
        return cells_of(rows, state, self.page_size, self.units, self.device)

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
        self.log.append(None)

    def write(self, request: str, rows: Rows, state: int | None, first_token: int = 0) -> None:
        """Give `request` new bytes in its cells, in the pool and here; the token at `rows[0]`
        is its `first_token`-th."""
        cells = self.cells(rows, state)
        written = Written(request, rows, state, first_token)
        for number, image in enumerate(self.expected):
            places, held = image.places(cells)
            if not places.numel():
                continue
            payload = self._payload(number, len(self.log))[:, places]
            image.buffer.scatter(places, payload)
            image.scatter(places, payload)
            if held is not None:
                written.located[number] = places, held
        self.log.append(written)

    def move(self, sources: Cells, targets: Cells) -> None:
        """Expect the tokens of `sources` in `targets` too. Nothing is expected of pages whose
        slots are not known, nor of a target whose source has no cell in a buffer; a token
        without a cell there stands at the padding row, 0."""
        found = self._held(sources)
        for image, (moved, held) in zip(self.expected, found, strict=True):
            unit = image.buffer.addressed_by
            if unit == "page":
                image.scatter(targets.page, image.buffer.gather(targets.page))
            elif unit == "token":
                if held is not None:
                    places, _ = image.places(targets)
                    places = torch.cat([places, places.new_zeros(1)])
                    image.scatter(places, image.buffer.gather(places))
                _restore(image, targets, moved, held)

    def copy_state(self, source: int, target: int) -> None:
        """Expect the state row `source` in `target` too."""
        from_, to = self.cells((), source).state, self.cells((), target).state
        for image in self.expected:
            if image.buffer.unit == "state":
                image.scatter(to, image.gather(from_))

    def zero_state(self, state: int) -> None:
        """Expect zero bytes in the state row `state`."""
        ids = self.cells((), state).state
        for image in self.expected:
            if image.buffer.unit == "state":
                image.scatter(ids, torch.zeros_like(image.gather(ids)))

    def save(self, cells: Cells) -> Saved:
        """What a copy of `cells` must hold."""
        found = self._held(cells)
        has_tail = cells.tail.numel() > 0
        return Saved(
            tuple(bytes_ for bytes_, _ in found),
            tuple(
                image.gather(cells.tail) if has_tail and image.has_tail else cells.tail
                for image in self.expected
            ),
            tuple(held for _, held in found),
        )

    def _held(self, cells: Cells) -> list[tuple[Tensor, Tensor | None]]:
        """The bytes of `cells` in each buffer, and for which of them there are any. What one
        shard of a buffer holds, another may be given."""
        found = [image.held(cells) for image in self.expected]
        for numbers in self.shards:
            whole = None
            every = torch.zeros(len(cells.token), dtype=torch.bool, device=self.device)
            for number in numbers:
                bytes_, held = found[number]
                assert held is not None, "a shard says by locate() which tokens it holds"
                if whole is None:
                    whole = bytes_.new_zeros((bytes_.shape[0], len(held), bytes_.shape[2]))
                whole[:, held] = bytes_
                every |= held
            assert whole is not None
            for number in numbers:
                found[number] = whole[:, every], every
        return found

    def restore(self, saved: Saved, cells: Cells) -> None:
        """Expect `saved` in `cells`; the tail may hold what it held or what was saved, and
        so may each byte of a page occupied in part, where its slots are not known."""
        for number, image in enumerate(self.expected):
            if image.buffer.addressed_by == "page" and cells.partial.numel():
                _restore_pages(image, cells.page, cells.partial, saved.cells[number])
            else:
                _restore(image, cells, saved.cells[number], saved.held[number])
            if cells.tail.numel() and image.has_tail:
                _accept_tail(image, cells.tail, saved.tails[number])

    def first_difference(self, cells: Cells | None = None) -> Difference | None:
        """The first cell that is wrong: payload before companions before state, and cells
        inside the index set before those outside."""
        self.settle()
        for number, image in enumerate(self.expected):
            for is_, must in zip(image.buffer.rows, image.layers, strict=True):
                if not torch.equal(is_, must):
                    return self._locate(number, cells)
        return None

    def difference_within(self, cells: Cells) -> Difference | None:
        """The first of `cells` that is wrong, payload first. Nothing is waited for."""
        for number, image in enumerate(self.expected):
            places, _ = image.places(cells)
            wrong = (image.buffer.gather(places) != image.gather(places)).any(-1)
            if bool(wrong.any()):
                layer, at = (int(i) for i in wrong.nonzero()[0])
                return Difference(number, layer, int(places[at]), True, int(wrong.sum()) - 1)
        return None

    def _locate(self, number: int, cells: Cells | None) -> Difference:
        actual, image = self.actual[number], self.expected[number]
        every = torch.arange(actual.cells, device=self.device)
        wrong = (actual.gather(every) != image.gather(every)).any(-1)
        ids = image.places(cells)[0] if cells is not None else every[:0]
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
        return self.told(found, is_, must)

    def told(self, found: Difference, is_: Tensor, must: Tensor) -> str:
        """The difference between the bytes `is_` and `must`, uint8 `[width]`, in words."""
        actual = self.actual[found.buffer]
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
        if not bool(content.any()):
            return "zero bytes"
        agree = int((content == must).int().cumprod(0).sum())
        if agree:
            return f"the first {agree} of its {len(must)} bytes, then bytes that nobody wrote"
        return "bytes that nobody wrote"

    def _owner(self, write: int, number: int, layer: int, cell: int) -> str:
        buffer = self.actual[number]
        place = f"{buffer.name}, layer {buffer.first_layer + layer}, row {cell}, write {write}"
        log = self.log[write]
        owner = log.owner(number, buffer, cell) if log else NOBODY
        return f"{owner} ({place})"

    def _payload(self, number: int, write: int) -> Tensor:
        buffer = self.actual[number]
        return fingerprints(
            number, len(buffer.rows), buffer.cells, buffer.width, write, self.device
        )


def _shards(buffers: Sequence[Buffer]) -> list[list[int]]:
    """The numbers of the buffers that are shards of one: `k@0`, `k@1`, ..."""
    groups: dict[str, list[int]] = {}
    for number, buffer in enumerate(buffers):
        name, at, _ = buffer.name.partition("@")
        if at:
            groups.setdefault(name, []).append(number)
    return list(groups.values())


def _restore(image: Image, cells: Cells, saved: Tensor, was_held: Tensor | None) -> None:
    """Expect the bytes `saved` in `cells`, token for token, where both have a cell here."""
    places, held = image.places(cells)
    if was_held is not None and held is not None:
        saved, places = saved[:, held[was_held]], places[was_held[held]]
    if places.numel():
        image.scatter(places, saved)


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
