"""The buffers of a device pool, in the groups that are copied and complete together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from reference_pools.base import KVPool
from reference_pools.hybrid import HybridPool
from reference_pools.mla import MLAPool
from reference_pools.rows import RowPool
from reference_pools.state import StatePool

Unit = Literal["token", "page", "state"]

MAIN = "main"
"""The part that every pool has; the others are extras."""


@dataclass(frozen=True, slots=True)
class Part:
    """Buffers `[rows, ...]`, one tensor per layer, whose row stands for a `unit`."""

    name: str
    unit: Unit
    buffers: dict[str, list[Tensor]]

    @property
    def layers(self) -> int:
        return max(len(layers) for layers in self.buffers.values())


def parts_of(pool: KVPool) -> tuple[Part, ...]:
    """`main`, and of `scales`, `index_keys` and `state` those that the pool has.

    `TypeError` for a pool whose token ids are not the rows of its buffers: a host tier of it
    would have to translate them.
    """
    attention = pool.attention if isinstance(pool, HybridPool) else pool
    if not isinstance(attention, (RowPool, MLAPool)):
        raise TypeError(f"no host tier for {type(attention).__name__}: ids must be its rows")
    tokens = attention.token_buffers()
    scales = {name: layers for name, layers in tokens.items() if name.endswith("_scale")}
    parts = (
        Part(MAIN, "token", {n: layers for n, layers in tokens.items() if n not in scales}),
        Part("scales", "token", scales),
        Part("index_keys", "page", _without(attention.buffers(), tokens)),
        Part("state", "state", state.buffers() if (state := state_of(pool)) else {}),
    )
    return tuple(part for part in parts if part.buffers)


def state_of(pool: KVPool) -> StatePool | None:
    return pool.state if isinstance(pool, HybridPool) else None


def _without(
    buffers: dict[str, list[Tensor]], names: dict[str, list[Tensor]]
) -> dict[str, list[Tensor]]:
    return {name: layers for name, layers in buffers.items() if name not in names}
