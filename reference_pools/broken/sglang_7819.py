"""The paged front of a pool forwards nothing, so its pair is the root's stub."""

from __future__ import annotations

import torch
from torch import Tensor

from conformance.geometry import Geometry
from reference_pools import KVPool, TokenPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class PagedFront(KVPool):
    def __init__(self, pool: TokenPool) -> None:
        super().__init__(
            size=pool.size,
            page_size=pool.page_size,
            layers=pool.layers,
            dtype=torch.bfloat16,
            device=pool.device,
        )
        self.pool = pool

    def buffers(self) -> dict[str, list[Tensor]]:
        return self.pool.buffers()


def make(geometry: Geometry) -> PagedFront:
    return PagedFront(make_token(geometry))


FAULT = Fault(
    reports=("sglang#7819",),
    fault_class="missing-override",
    clause="every_verb_works",
    make=make,
    kind="token",
    program="write r0 at 5; offload r0 as c0",
)
