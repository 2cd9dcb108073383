"""Virtual ids: callers keep theirs while the pool moves rows in physical memory."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_pools.base import HostCopy, KVPool
from reference_pools.token import TokenPool
from reference_pools.transfer import move_rows


class VirtualPool(KVPool):
    """A `TokenPool` behind `table`, int64 `[token_rows]`: virtual id -> physical row of `inner`.

    The table permutes the rows that requests use, and maps each reserved row to itself.
    Every verb takes virtual ids and translates them when it is called, so a copy made
    before `compact` is loaded to the right rows after it (sglang 37416: ids that left the
    pool untranslated).
    """

    def __init__(self, inner: TokenPool) -> None:
        super().__init__(**inner.geometry())
        self.inner = inner
        rows = torch.arange(self.token_rows, device=self.device)
        self.table = torch.cat([rows[: self.page_size], rows[self.page_size :].flip(0)])

    def buffers(self) -> dict[str, list[Tensor]]:
        return self.inner.buffers()

    def locate(self, name: str, ids: Tensor) -> Tensor | None:  # noqa: ARG002
        """The rows `[n]` that hold tokens `ids` `[n]`: the same in every buffer."""
        return self.translate(ids)

    def translate(self, ids: Tensor) -> Tensor:
        """Virtual ids `[n]` as physical rows, int64 `[n]`."""
        return self.table[ids]

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        self.check_tokens(indices)
        return self.inner.get_cpu_copy(self.translate(indices), mamba_indices)

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        self.check_tokens(indices)
        self.inner.load_cpu_copy(kv_cache_cpu, self.translate(indices), mamba_indices)

    def move_kv_cache(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        self.check_move(tgt_loc, src_loc)
        self.inner.move_kv_cache(self.translate(tgt_loc), self.translate(src_loc))

    def compact(self) -> None:
        """Move every token one physical row up and the last one to the first row, and the
        table with them: each virtual id keeps its bytes."""
        rows = torch.arange(self.page_size, self.token_rows, device=self.table.device)
        above = rows.roll(-1)
        for layers in self.inner.buffers().values():
            move_rows(layers, above, rows)
        self.table[self.page_size :] = above[self.table[self.page_size :] - self.page_size]
        self.wait("compact")
