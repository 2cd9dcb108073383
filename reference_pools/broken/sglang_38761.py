"""State rows are addressed by a path that takes int64 ids alone."""

from __future__ import annotations

from typing import Any

import torch

from conformance.geometry import Geometry
from reference_pools import HybridPool, StatePool
from reference_pools.broken import Fault
from reference_pools.declarations import make_state, make_token


class TakesInt64(StatePool):
    def rows_of(self, mamba_indices: Any) -> Any:
        if mamba_indices.dtype == torch.int32:
            raise RuntimeError(f"expected int64 indices, got {mamba_indices.dtype}")
        return super().rows_of(mamba_indices)


def make(geometry: Geometry) -> HybridPool:
    return HybridPool(make_token(geometry), make_state(geometry, cls=TakesInt64))


FAULT = Fault(
    reports=("sglang#38761",),
    fault_class="dtype/scale",
    clause="every_index_form_is_accepted",
    make=make,
    kind="hybrid",
    program="write r0 at 5 state 1; offload r0 as c0 state 1 int32",
)
