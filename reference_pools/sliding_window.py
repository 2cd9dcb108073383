"""Sliding-window models: layers that see every token beside layers that see the last ones."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from reference_pools.base import HostCopy, KVPool, check_ids, refuse_state
from reference_pools.token import TokenPool
from reference_pools.transfer import select_rows

PREFIX = "window_"


class SlidingWindowPool(KVPool):
    """Buffers `k` and `v` of the `full` layers, `window_k` and `window_v` of the `window` layers.

    The window pool is smaller: `mapping`, int64 `[full.token_rows]`, gives the row there of
    a token of the full pool, and 0 for a token that has left the window (sglang,
    `SWAKVPool`). All verbs take ids of the full pool. A copy holds the window rows of those
    tokens that had one, and which they were (`in_window`, bool `[n]`); reload restores them
    for the tokens that have one again, and writes no other window row.
    """

    def __init__(self, full: TokenPool, window: TokenPool) -> None:
        super().__init__(**full.geometry() | {"layers": full.layers + window.layers})
        self.full = full
        self.window = window
        self.mapping = torch.zeros(self.token_rows, dtype=torch.int64, device=self.device)

    def buffers(self) -> dict[str, list[Tensor]]:
        window = {PREFIX + name: layers for name, layers in self.window.buffers().items()}
        return self.full.buffers() | window

    def locate(self, name: str, ids: Tensor) -> Tensor | None:
        """The rows `[n]` of a window buffer that hold tokens `ids` `[n]`, -1 for none; None
        for a buffer of the full layers, whose rows are the ids."""
        if not name.startswith(PREFIX):
            return None
        rows = self.mapping[ids]
        return torch.where(rows > 0, rows, -1)

    def map_window(self, full_ids: Tensor, window_ids: Tensor) -> None:
        """Give tokens `full_ids` `[n]` the window rows `window_ids` `[n]`.

        Raises as `check_ids` does, and `ValueError` for another number of rows, a token
        that has a row or a row that has a token, before anything is changed.
        """
        self.check_tokens(full_ids)
        check_ids("window_ids", window_ids, self.window.page_size, self.window.token_rows)
        if len(full_ids) != len(window_ids):
            raise ValueError(f"{len(window_ids)} window rows for {len(full_ids)} tokens")
        window_ids = window_ids.to(self.mapping)
        mapped = full_ids[(self.mapping[full_ids] > 0).to(full_ids.device)]
        if len(mapped):
            raise ValueError(f"token {int(mapped[0])} has a window row already")
        taken = window_ids[torch.isin(window_ids, self.mapping)]
        if len(taken):
            raise ValueError(f"window row {int(taken[0])} has a token already")
        self.mapping[full_ids] = window_ids

    def unmap_window(self, full_ids: Tensor) -> None:
        """Take tokens `full_ids` `[n]` out of the window; no bytes change.

        A token that is out already stays out. Raises as `check_ids` does.
        """
        self.check_tokens(full_ids)
        self.mapping[full_ids] = 0

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        full = self.full.get_cpu_copy(indices, mamba_indices)
        rows = self.mapping[indices]
        in_window = rows > 0
        window = self.window.get_cpu_copy(rows[in_window])
        chunks = {"in_window": [[in_window.cpu()]]}
        parts = {"full": full, "window": window}
        return HostCopy(self.layout(), len(indices), 0, chunks, parts=parts)

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        saved = kv_cache_cpu.chunks["in_window"][0][0]
        rows = self.mapping[indices]
        mapped = rows > 0
        window = only(kv_cache_cpu.parts["window"], mapped.cpu()[saved])
        self.full.load_cpu_copy(kv_cache_cpu.parts["full"], indices)
        self.window.load_cpu_copy(window, rows[mapped & saved.to(rows.device)])

    def move_kv_cache(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        """As `KVPool.move_kv_cache`; window rows move where both tokens have one."""
        self.full.move_kv_cache(tgt_loc, src_loc)
        targets, sources = self.mapping[tgt_loc], self.mapping[src_loc]
        both = (targets > 0) & (sources > 0)
        self.window.move_kv_cache(targets[both], sources[both])


def only(copy: HostCopy, keep: Tensor) -> HostCopy:
    """The copy of those tokens of `copy` for which `keep`, bool `[n]` on the host, is true."""
    chunks = {
        name: [select_rows(layer, keep) for layer in layers] for name, layers in copy.chunks.items()
    }
    return replace(copy, tokens=int(keep.sum()), chunks=chunks)
