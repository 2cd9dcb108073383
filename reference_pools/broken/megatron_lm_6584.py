"""What is handed out is a view, so a later write changes what its holder has."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from reference_pools import HybridPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_hybrid


class ReturnsView(HybridPool):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices=mamba_indices)
        if copy.state is None or self.device.type != "cpu":
            return copy
        row = int(self.state.rows_of(mamba_indices)[0])
        views = [[layer[row : row + 1]] for layer in self.state.conv]
        state = replace(copy.state, chunks=copy.state.chunks | {"conv": views})
        return replace(copy, state=state)


FAULT = Fault(
    reports=("Megatron-LM#6584", "sglang#21624"),
    fault_class="aliasing",
    clause="copy_is_its_own_memory",
    make=partial(make_hybrid, cls=ReturnsView),
    kind="hybrid",
    program="write r0 at 5 state 1; offload r0 as c0 state 1",
)
