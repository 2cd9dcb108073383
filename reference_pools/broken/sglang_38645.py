"""Ids of the space that all ranks share address the rows of one rank at offload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from reference_pools import ShardedPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_sharded
from reference_pools.transfer import offload_by


class SavesByWideIds(ShardedPool):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        chunks = {
            name: [offload_by(partial(self.wide, rows), indices, self.chunk_tokens) for rows in of]
            for name, of in self.layers_by_rank().items()
        }
        return replace(copy, chunks=chunks)

    def wide(self, rows: Sequence[Tensor], ids: Tensor) -> Tensor:
        local = len(rows[0])  # a device reads on where its rows end
        return torch.stack([rows[i % self.ranks][i % local] for i in ids.tolist()])


FAULT = Fault(
    reports=("sglang#38645", "sglang#38790", "sglang#39487"),
    fault_class="index-space-mismatch",
    clause="reload_restores_the_same_rows",
    make=partial(make_sharded, cls=SavesByWideIds),
    kind="token",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
