"""Host memory of one buffer: its two layouts, and copies of rows of one layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Layout = Literal["layer_first", "page_first"]


@dataclass(frozen=True, slots=True)
class Row:
    """The shape and dtype of one row of a buffer."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, rows: Tensor) -> Row:
        """Of `rows` `[n, ...]`."""
        return cls(tuple(rows.shape[1:]), rows.dtype)

    @property
    def bytes(self) -> int:
        return torch.Size(self.shape).numel() * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.bytes} bytes, {list(self.shape)} of {self.dtype}"


class HostBuffer:
    """Rows on the host for one buffer, in every layer.

    `memory` is, by layout:

    - layer_first: `[layers, pages * per_page, ...]`. A layer is one piece; this is how the
      device has it.
    - page_first: `[pages, layers, per_page, ...]`. A page is one piece, all layers of it;
      this is how storage wants it.

    `per_page` is the page size of a buffer whose row is a token, and 1 where a row is a page
    or a state. Pinned where `pin`: only then do copies from and to a device run by
    themselves (PyTorch, "CUDA semantics", use of pinned memory buffers).
    """

    def __init__(
        self, row: Row, *, layers: int, pages: int, per_page: int, layout: Layout, pin: bool
    ) -> None:
        """`ValueError` for a layout that is neither of the two."""
        if layout not in ("layer_first", "page_first"):
            raise ValueError(f"layout must be layer_first or page_first, got {layout!r}")
        self.row = row
        self.layers = layers
        self.per_page = per_page
        self.layout = layout
        by_layer, by_page = (layers, pages * per_page), (pages, layers, per_page)
        lead = by_layer if layout == "layer_first" else by_page
        memory = torch.zeros((*lead, *row.shape), dtype=row.dtype)
        self.memory = memory.pin_memory() if pin else memory

    def page(self, layer: int, page: int) -> Tensor:
        """A view of the rows of one page in one layer: `[per_page, ...]`."""
        if self.layout == "page_first":
            return self.memory[page, layer]
        begin = page * self.per_page
        return self.memory[layer, begin : begin + self.per_page]

    def gather(self, layer: int, ids: Sequence[int], out: Tensor) -> None:
        """Copy host rows `ids` of a layer into `out` `[n, ...]`, on any device.

        In flight on return where `out` is on a device, in the current stream.
        """
        for part, rows in self._runs(layer, ids):
            out[part].copy_(rows, non_blocking=True)

    def scatter(self, layer: int, ids: Sequence[int], rows: Tensor) -> None:
        """Copy `rows` `[n, ...]`, on any device, to host rows `ids` of a layer; as `gather`."""
        for part, target in self._runs(layer, ids):
            target.copy_(rows[part], non_blocking=True)

    def _runs(self, layer: int, ids: Sequence[int]) -> Iterator[tuple[slice, Tensor]]:
        """Where `ids` name neighbours in one page: their places in `ids`, and a view of them."""
        start = 0
        for end in range(1, len(ids) + 1):
            if end < len(ids) and ids[end] == ids[end - 1] + 1 and ids[end] % self.per_page:
                continue
            page, slot = divmod(ids[start], self.per_page)
            yield slice(start, end), self.page(layer, page)[slot : slot + end - start]
            start = end


def check_row(name: str, host: Row, layers: Sequence[Tensor]) -> None:
    """Refuse host rows that are not the device's, in shape, dtype and so in bytes.

    A row that was sized by the model's configuration is not as wide as a packed one: 576
    bytes of a latent against 656 (sglang 37534, 32418, 13431, 40304). `layers` are the device
    buffer, `[rows, ...]` each; `ValueError` names the buffer and both widths.
    """
    for layer, rows in enumerate(layers):
        device = Row.of(rows)
        if device != host:
            raise ValueError(
                f"{name}: a host row is {host}; a device row of layer {layer} is {device}"
            )
