"""The oracle: what every row of every buffer must hold, and whose bytes a row holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from conformance.buffers import Buffer, Unit
from conformance.fingerprints import fingerprints
from conformance.programs import Rows


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells that one request occupies, as ids of each unit; `tail` are the slots behind
    its last token in that token's page, which a pool may restore with the page."""

    token: Tensor
    page: Tensor
    state: Tensor
    tail: Tensor

    def of(self, unit: Unit) -> Tensor:
        """The ids `[n]` of this unit."""
        return {"token": self.token, "page": self.page, "state": self.state}[unit]


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


@dataclass(slots=True)
class Model:
    """Expected bytes beside the real ones; both are written by the same calls."""

    actual: Sequence[Buffer]
    page_size: int
    paged: bool
    expected: list[Buffer] = field(default_factory=list)
    log: list[dict[tuple[Unit, int], str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.expected = [buffer.clone() for buffer in self.actual]
        self.overwrite()

    @property
    def device(self) -> torch.device:
        return self.actual[0].rows[0].device

    def cells(self, rows: Rows, state: int | None) -> Cells:
        """The cells of the token ids `rows` and of one state id."""

        def ids(values: Sequence[int]) -> Tensor:
            return torch.tensor(values, dtype=torch.int64, device=self.device)

        pages = list(dict.fromkeys(row // self.page_size for row in rows))
        tail: Sequence[int] = ()
        if self.paged and rows:
            tail = range(rows[-1] + 1, (pages[-1] + 1) * self.page_size)
        return Cells(ids(rows), ids(pages), ids([] if state is None else [state]), ids(tail))

    def overwrite(self) -> None:
        """Fill every cell, in the pool and here, with bytes of nobody."""
        for number, (actual, expected) in enumerate(zip(self.actual, self.expected, strict=True)):
            payload = self._payload(number, len(self.log))
            actual.fill(payload)
            expected.fill(payload)
        self.log.append({})

    def write(self, request: str, rows: Rows, state: int | None) -> None:
        """Give `request` new bytes in its cells, in the pool and here."""
        cells = self.cells(rows, state)
        for number, (actual, expected) in enumerate(zip(self.actual, self.expected, strict=True)):
            ids = cells.of(actual.addressed_by)
            if len(ids):
                payload = self._payload(number, len(self.log))[:, ids]
                actual.scatter(ids, payload)
                expected.scatter(ids, payload)
        owners: dict[tuple[Unit, int], str] = {
            ("token", row): f"token {token} of {request}" for token, row in enumerate(rows)
        }
        owners |= {("page", row // self.page_size): f"a page of {request}" for row in rows}
        owners |= {("state", state): f"the state of {request}"} if state is not None else {}
        self.log.append(owners)

    def save(self, cells: Cells) -> Saved:
        """What a copy of `cells` must hold."""
        return Saved(
            tuple(b.gather(cells.of(b.addressed_by)) for b in self.expected),
            tuple(
                b.gather(cells.tail) if b.addressed_by == "token" else cells.tail
                for b in self.expected
            ),
        )

    def restore(self, saved: Saved, cells: Cells) -> None:
        """Expect `saved` in `cells`; the tail may hold what it held or what was saved."""
        for number, (actual, expected) in enumerate(zip(self.actual, self.expected, strict=True)):
            ids = cells.of(expected.addressed_by)
            if len(ids):
                expected.scatter(ids, saved.cells[number])
            if len(cells.tail) and expected.addressed_by == "token":
                _accept_tail(actual, expected, cells.tail, saved.tails[number])

    def first_difference(self, cells: Cells | None = None) -> Difference | None:
        """The first cell that is wrong: payload before companions before state, and cells
        inside the index set before those outside."""
        for number, (actual, expected) in enumerate(zip(self.actual, self.expected, strict=True)):
            for layer, (is_, must) in enumerate(zip(actual.rows, expected.rows, strict=True)):
                if not torch.equal(is_, must):
                    return self._locate(number, layer, cells)
        return None

    def _locate(self, number: int, layer: int, cells: Cells | None) -> Difference:
        actual, expected = self.actual[number], self.expected[number]
        every = torch.arange(actual.cells, device=self.device)
        wrong = (actual.gather(every) != expected.gather(every)).any(-1)
        ids = cells.of(actual.addressed_by) if cells is not None else every[:0]
        within = torch.isin(every, ids) & wrong.any(0)
        inside = bool(within.any())
        candidates = wrong & within if inside else wrong
        layer, cell = (int(i) for i in candidates.nonzero()[0])
        return Difference(number, layer, cell, inside, int(wrong.sum()) - 1)

    def adopt(self, number: int) -> None:
        """Expect what buffer `number` holds now."""
        for is_, must in zip(self.actual[number].rows, self.expected[number].rows, strict=True):
            must.copy_(is_)

    def describe(self, found: Difference) -> str:
        """The difference in words: where, whose bytes it holds, whose it should hold."""
        actual, expected = self.actual[found.buffer], self.expected[found.buffer]
        cell = torch.tensor([found.cell], device=self.device)
        is_, must = (b.gather(cell)[found.layer, 0] for b in (actual, expected))
        others = f" (and {found.others} more cells of {actual.name})" if found.others else ""
        where = f"{actual.unit if actual.columns is None else 'token'} row {found.cell}"
        return (
            f"{where} of {actual.name}, layer {actual.first_layer + found.layer}: "
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


def _accept_tail(actual: Buffer, expected: Buffer, tail: Tensor, saved: Tensor) -> None:
    is_ = actual.gather(tail)
    if saved.shape == is_.shape:
        restored = (is_ == saved).all(-1, keepdim=True)
        expected.scatter(tail, torch.where(restored, is_, expected.gather(tail)))
