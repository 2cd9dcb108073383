"""Recurrent state of linear-attention layers: one row per request, not per token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from reference_pools.base import HostCopy, check_ids, check_pairs
from reference_pools.transfer import move_rows, offload_rows, reload_rows, synchronize


class StatePool:
    """`conv` and `temporal`, each `[layers, size + 1, ...]`; state row 0 takes padded writes.

    `conv_shape` and `temporal_shape` are the shapes of one request's state in one layer
    (Mamba-2, section 8). State keeps its own dtype: it is accumulated, attention is not.
    `unwaited` is that of `KVPool`.
    """

    unwaited: ClassVar[frozenset[str]] = frozenset()

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
        rows = as_rows(mamba_indices)
        check_ids("mamba_indices", rows, 1, self.size + 1)
        return rows

    def wait(self, point: str) -> None:
        """As `KVPool.wait`."""
        if point not in self.unwaited:
            synchronize(self.device)

    def get_cpu_copy(self, rows: Tensor) -> HostCopy:
        chunks = {
            name: [offload_rows(layer, rows, self.size) for layer in layers]
            for name, layers in self.buffers().items()
        }
        self.wait("offload")
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
        self.wait("reload")

    def copy_state(self, sources: Tensor, targets: Tensor) -> None:
        """Copy state rows `sources` to `targets`, both `[n]` or 0-dim, in every buffer and layer.

        A request that goes on from a cached prefix gets the prefix's state this way (sglang,
        `MambaPool.copy_from`). Raises as `check_pairs` does, before anything is changed.
        """
        sources, targets = as_rows(sources), as_rows(targets)
        check_pairs("targets", targets, "sources", sources, 1, self.size + 1)
        for layers in self.buffers().values():
            move_rows(layers, targets, sources)
        self.wait("state_copied")

    def zero_state(self, ids: Tensor) -> None:
        """Set every byte of state rows `ids`, `[n]` or 0-dim, to zero.

        State is read before it is first written, so a row that served another request must
        be cleared (sglang, `MambaPool.clear_slots`; vllm 56524). Raises as `check_ids` does.
        """
        rows = as_rows(ids)
        check_ids("ids", rows, 1, self.size + 1)
        for layers in self.buffers().values():
            for layer in layers:
                layer[rows] = 0
        self.wait("state_zeroed")


def as_rows(ids: Tensor) -> Tensor:
    """A 0-dim id as the 1-D tensor of one row; anything else as it is."""
    return ids.reshape(1) if isinstance(ids, Tensor) and ids.dim() == 0 else ids
