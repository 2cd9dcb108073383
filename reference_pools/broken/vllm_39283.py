"""Zeroing covers one kind of state, and leaves what the last request wrote in the other."""

from __future__ import annotations

from typing import Any

from conformance.geometry import Geometry
from reference_pools import HybridPool, StatePool
from reference_pools.broken import Fault
from reference_pools.declarations import make_state, make_token


class ZeroesConvAlone(StatePool):
    def zero_state(self, ids: Any) -> None:
        kept = self.temporal.clone()
        super().zero_state(ids)
        self.temporal.copy_(kept)


def make(geometry: Geometry) -> HybridPool:
    return HybridPool(make_token(geometry), make_state(geometry, cls=ZeroesConvAlone))


FAULT = Fault(
    reports=("vllm#39283",),
    fault_class="stale-state",
    clause="zeroed_state_is_zero",
    make=make,
    kind="hybrid",
    program="zero state 1",
)
