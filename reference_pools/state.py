"""Recurrent state of linear-attention layers: one row per request, not per token."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from reference_pools.base import HostCopy, check_ids
from reference_pools.transfer import offload_rows, reload_rows, synchronize


class StatePool:
    """`conv` and `temporal`, each `[layers, size + 1, ...]`; state row 0 takes padded writes.

    `conv_shape` and `temporal_shape` are the shapes of one request's state in one layer
    (Mamba-2, section 8). State keeps its own dtype: it is accumulated, attention is not.
    """

    def __init__(
        self,
        *,
        size: int,
        layers: int,
        conv_shape: Sequence[int],
        temporal_shape: Sequence[int],
        conv_dtype: torch.dtype,
        temporal_dtype: torch.dtype = torch.float32,
        device: str | torch.device,
    ) -> None:
        self.size = size
        self.device = torch.device(device)
        rows = (layers, size + 1)
        self.conv = torch.zeros((*rows, *conv_shape), dtype=conv_dtype, device=self.device)
        self.temporal = torch.zeros(
            (*rows, *temporal_shape), dtype=temporal_dtype, device=self.device
        )

    def buffers(self) -> dict[str, list[Tensor]]:
        """Views `[size + 1, ...]` by buffer name, one per layer."""
        return {"conv": list(self.conv), "temporal": list(self.temporal)}

    def layout(self) -> tuple[tuple[object, ...], ...]:
        return tuple(
            (name, len(layers), layers[0].dtype, *layers[0].shape[1:])
            for name, layers in self.buffers().items()
        )

    def rows_of(self, mamba_indices: Tensor) -> Tensor:
        """State ids as a 1-D tensor, refused as `check_ids` does; a 0-dim id is one row."""
        if isinstance(mamba_indices, Tensor) and mamba_indices.dim() == 0:
            mamba_indices = mamba_indices.reshape(1)
        check_ids("mamba_indices", mamba_indices, 1, self.size + 1)
        return mamba_indices

    def get_cpu_copy(self, rows: Tensor) -> HostCopy:
        chunks = {
            name: [offload_rows(layer, rows, self.size) for layer in layers]
            for name, layers in self.buffers().items()
        }
        synchronize(self.device)
        return HostCopy(self.layout(), len(rows), 0, chunks)

    def check_copy(self, copy: HostCopy, rows: Tensor) -> None:
        if copy.layout != self.layout():
            raise ValueError(f"copy has state {copy.layout}, this pool has {self.layout()}")
        if copy.tokens != len(rows):
            raise ValueError(f"copy holds {copy.tokens} state rows, but {len(rows)} were given")

    def load_cpu_copy(self, copy: HostCopy, rows: Tensor) -> None:
        for name, layers in self.buffers().items():
            for layer, chunks in zip(layers, copy.chunks[name], strict=True):
                reload_rows(layer, rows, chunks)
        synchronize(self.device)
