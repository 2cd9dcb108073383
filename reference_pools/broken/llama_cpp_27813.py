"""A subclass adds a third memory and overrides everything except save and load."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor

from reference_pools import MLAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_mla


class AddsMemory(MLAPool):
    def __init__(self, **geometry: Any) -> None:
        super().__init__(**geometry)
        self.index = self.allocate(19)

    def buffers(self) -> dict[str, list[Tensor]]:
        return super().buffers() | {"index": self.index}


FAULT = Fault(
    reports=("llama.cpp#27813",),
    fault_class="missing-override",
    clause="companions_travel",
    make=partial(make_mla, cls=AddsMemory),
    kind="mla",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
