"""Padded entries go to the last row, which is thought to be spare and belongs to a request."""

from __future__ import annotations

from typing import Any

from conformance.geometry import Geometry
from reference_pools import HybridPool, StatePool
from reference_pools.broken import Fault
from reference_pools.declarations import make_state, make_token


class PadsToTheLastRow(StatePool):
    def load_cpu_copy(self, copy: Any, rows: Any) -> None:
        super().load_cpu_copy(copy, rows)
        for layers in self.buffers().values():
            for layer in layers:
                layer[-1] = layer[int(rows[0])]


def make(geometry: Geometry) -> HybridPool:
    return HybridPool(make_token(geometry), make_state(geometry, cls=PadsToTheLastRow))


FAULT = Fault(
    reports=("sglang#38997",),
    fault_class="aliasing",
    clause="reload_leaves_other_rows_alone",
    make=make,
    kind="hybrid",
    program="write r0 at 5 state 1; offload r0 as c0 state 1; overwrite; reload c0 at 5 state 1",
)
