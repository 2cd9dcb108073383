"""Copies that are alive: what they must hold, and what is checked of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from conformance.buffers import Buffer
from conformance.cells import Cells
from conformance.model import Saved
from conformance.walk import tensors_in

GARBAGE = 0xA5
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Problem = tuple[str, str]
"""The clause that is broken, and how."""


@dataclass(slots=True)
class LiveCopy:
    """The host object that offload returned, what it must hold, and its bytes when made.

    `saved` is None for a copy that another pool made.
    """

    name: str
    host: Any
    saved: Saved | None
    tokens: int
    tensors: list[tuple[str, Tensor]]
    bytes: list[tuple[Tensor, Tensor]]
    checked: bool = False

    @classmethod
    def of(cls, name: str, host: Any, saved: Saved, tokens: int, pool: Any) -> LiveCopy:
        tensors = [(path, tensor) for path, tensor in tensors_in(host, skip=pool) if tensor.numel()]
        views = [tensor.view(_BITS.get(tensor.itemsize, tensor.dtype)) for _, tensor in tensors]
        return cls(name, host, saved, tokens, tensors, [(view, view.clone()) for view in views])

    def scribble(self) -> None:
        for view, _ in self.bytes:
            view.fill_(GARBAGE)

    def changes(self, when: str) -> str | None:
        """Which host tensor no longer holds what it held when the copy was made, in words."""
        self.checked = True
        for (path, _), (now, before) in zip(self.tensors, self.bytes, strict=True):
            if not torch.equal(now, before):
                return f"the host tensor {path or 'itself'} of {self.name} has changed {when}"
        return None

    def shared_with(self, buffers: list[Buffer]) -> str | None:
        """Which host tensor is a view of the pool's memory, in words."""
        pool = {rows.untyped_storage().data_ptr(): b.name for b in buffers for rows in b.rows}
        for path, tensor in self.tensors:
            shared = pool.get(tensor.untyped_storage().data_ptr())
            if shared is not None:
                return (
                    f"the host tensor {path or 'itself'} of {self.name} is a view of the "
                    f"pool's {shared}"
                )
        return None

    def problems(
        self, buffers: list[Buffer], cells: Cells, page_rows: int, owned: frozenset[int]
    ) -> Iterator[Problem]:
        """Where it lies, and how much it holds. `page_rows` is the page size where whole
        pages may be copied, else 0; `owned` are the addresses of the pool's storages."""
        for path, tensor in self.tensors:
            if tensor.device.type != "cpu":
                yield "copy_is_on_the_host", f"{path} of the copy is on {tensor.device}"
        storages = {t.untyped_storage().data_ptr(): t for _, t in self.tensors}
        held = sum(
            # A slice of host memory that the pool itself keeps is not the copy's alone.
            t.nbytes if at in owned else t.untyped_storage().nbytes()
            for at, t in storages.items()
        )
        limit = _size_limit(buffers, cells, page_rows)
        if held > limit:
            yield (
                "copy_size_is_bounded",
                f"the copy of {self.tokens} tokens holds {held} bytes; its rows and ids, "
                f"twice, are {limit}",
            )


def _size_limit(buffers: list[Buffer], cells: Cells, page_rows: int) -> int:
    rows = {unit: cells.of(unit).numel() for unit in ("token", "page", "state")}
    if page_rows:
        rows["token"] = rows["page"] * page_rows
    return 2 * sum(rows[b.unit] * b.row_bytes for b in buffers) + 16 * sum(rows.values())
