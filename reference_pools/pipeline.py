"""A pipeline stage: some of the model's layers, found by their global ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from reference_pools.token import TokenPool


class PipelinePool(TokenPool):
    """`k` and `v` of the layers `layer_ids`, ascending global ids that may leave gaps.

    Buffers list the layers in this order; callers that know a layer by its global id use
    `key_of` and `value_of` (sglang-jax 988: lists without gaps read with global ids). A copy
    is only loaded into a stage of the same layers. The other arguments are those of
    `TokenPool`, without `layers` and `first_layer`.

    Raises `ValueError` for layer ids that are none, not ascending, or negative.
    """

    def __init__(self, *, layer_ids: Sequence[int], **geometry: Any) -> None:
        self.layer_ids = tuple(layer_ids)
        if not layer_ids or list(layer_ids) != sorted(set(layer_ids)):
            raise ValueError(f"layer_ids must be one or more ascending ids, got {self.layer_ids}")
        super().__init__(layers=len(layer_ids), first_layer=layer_ids[0], **geometry)

    def key_of(self, layer_id: int) -> Tensor:
        """Keys `[rows, heads, head_dim]` of a global layer; `IndexError` if it is elsewhere."""
        return self.k[self._position(layer_id)]

    def value_of(self, layer_id: int) -> Tensor:
        """Values `[rows, heads, v_head_dim]` of a global layer; `IndexError` if it is elsewhere."""
        return self.v[self._position(layer_id)]

    def layout(self) -> tuple[tuple[object, ...], ...]:
        return (("layer_ids", *self.layer_ids), *super().layout())

    def _position(self, layer_id: int) -> int:
        if layer_id not in self.layer_ids:
            held = ", ".join(map(str, self.layer_ids))
            raise IndexError(f"layer {layer_id} is not on this stage, which holds layers {held}")
        return self.layer_ids.index(layer_id)
