"""Decode context parallelism: the tokens of one request are spread over several ranks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from reference_pools.base import HostCopy, KVPool, refuse_state
from reference_pools.token import TokenPool
from reference_pools.transfer import offload_by, reload_by


class ShardedPool(KVPool):
    """All `ranks` ranks in one process: `shards[r]` holds the tokens with `id % ranks == r`.

    Callers pass ids of the whole space; a token is row `id // ranks` of its owner
    (sglang 38645: the wide ids used as local rows). Buffers are named by rank, `k@0`
    `[ceil(token_rows / ranks), heads, head_dim]` and so on. A copy holds `k` and `v` in the
    order of its tokens, as the ranks would exchange them: a token that is loaded to another
    id may have another owner. The other arguments are those of `TokenPool`.

    Raises `ValueError` for less than one rank, or as many as there are rows.
    """

    def __init__(
        self,
        *,
        ranks: int,
        heads: int,
        head_dim: int,
        v_head_dim: int | None = None,
        **geometry: Any,
    ) -> None:
        super().__init__(**geometry)
        if not 1 <= ranks < self.token_rows:
            raise ValueError(f"ranks must be 1 to {self.token_rows - 1}, got {ranks}")
        self.ranks = ranks
        local = self.geometry() | {"size": -(-self.token_rows // ranks) - 1, "page_size": 1}
        self.shards = [
            TokenPool(heads=heads, head_dim=head_dim, v_head_dim=v_head_dim, **local)
            for _ in range(ranks)
        ]

    def buffers(self) -> dict[str, list[Tensor]]:
        return {
            f"{name}@{rank}": layers
            for rank, shard in enumerate(self.shards)
            for name, layers in shard.buffers().items()
        }

    def locate(self, name: str, ids: Tensor) -> Tensor | None:
        """The local rows `[n]` of tokens `ids` `[n]`, -1 where the rank in `name` is not theirs."""
        rank = int(name.rpartition("@")[2])
        return torch.where(ids % self.ranks == rank, ids // self.ranks, -1).long()

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        chunks = {
            name: [
                offload_by(partial(self.gather, rows), indices, self.chunk_tokens)
                for rows in layers
            ]
            for name, layers in self.layers_by_rank().items()
        }
        self.wait("offload")
        return HostCopy(self.layout(), len(indices), 0, chunks)

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        for name, layers in self.layers_by_rank().items():
            for rows, chunks in zip(layers, kv_cache_cpu.chunks[name], strict=True):
                reload_by(partial(self.scatter, rows), indices, chunks, rows[0].device)
        self.wait("reload")

    def move_kv_cache(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        self.check_move(tgt_loc, src_loc)
        for layers in self.layers_by_rank().values():
            for rows in layers:
                self.scatter(rows, tgt_loc, self.gather(rows, src_loc))
        self.wait("move")

    def layers_by_rank(self) -> dict[str, list[tuple[Tensor, ...]]]:
        """Each layer of `k` and `v` as the tensors of all ranks."""
        shards = [shard.buffers() for shard in self.shards]
        return {
            name: list(zip(*(layers[name] for layers in shards), strict=True)) for name in shards[0]
        }

    def gather(self, rows: Sequence[Tensor], ids: Tensor) -> Tensor:
        """Tokens `ids` `[n]` of one layer, whose rows are `rows[rank]`: a new `[n, ...]`."""
        ids = ids.to(rows[0].device)
        tokens = rows[0].new_empty((len(ids), *rows[0].shape[1:]))
        for rank, local in enumerate(rows):
            mine = ids % self.ranks == rank
            tokens[mine] = local[ids[mine] // self.ranks]
        return tokens

    def scatter(self, rows: Sequence[Tensor], ids: Tensor, tokens: Tensor) -> None:
        """Write `tokens` `[n, ...]`, as `gather` returns them, to the owners of `ids` `[n]`."""
        ids = ids.to(rows[0].device)
        for rank, local in enumerate(rows):
            mine = ids % self.ranks == rank
            local[ids[mine] // self.ranks] = tokens[mine]
