"""Which cells a request occupies, as ids of each unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

import torch
from torch import Tensor

from conformance.buffers import Unit
from conformance.step_text import Rows

Units = Literal["tokens", "pages", "runs"]
"""What rows are counted in: tokens alone, pages too, or runs of pages that begin and end
inside one."""


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


@cache
def _no_ids(device: torch.device) -> Tensor:
    return torch.empty(0, dtype=torch.int64, device=device)


@lru_cache(maxsize=4096)
def cells_of(
    rows: Rows, state: int | None, page_size: int, units: Units, device: torch.device
) -> Cells:
    def ids(values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=device) if values else none

    none = _no_ids(device)
    states = [] if state is None else [state]
    if units == "tokens":
        return Cells(ids(rows), none, ids(states), none, none)
    occupied = Counter(row // page_size for row in rows)
    pages = list(occupied)
    partial = [at for at, page in enumerate(pages) if occupied[page] < page_size]
    tail: Sequence[int] = ()
    if units == "runs" and rows:
        tail = range(rows[-1] + 1, (pages[-1] + 1) * page_size)
    return Cells(ids(rows), ids(pages), ids(states), ids(tail), ids(partial))
