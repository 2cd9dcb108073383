"""Rows from the device to the host and back, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Chunks = list[Tensor]
"""Host tensors that together hold the rows of one index set, in order."""


def offload_rows(rows: Tensor, ids: Tensor, chunk: int) -> Chunks:
    """Copy `rows[ids]` to the host, `chunk` rows at a time.

    `rows` is `[n_rows, ...]` on any device, `ids` an integer tensor `[n]`. From a device the
    copies go to pinned memory and are still in flight on return: call `synchronize`.
    """
    return offload_by(rows.__getitem__, ids, chunk)


def reload_rows(rows: Tensor, ids: Tensor, chunks: Chunks) -> None:
    """Write `chunks` back into `rows[ids]`; in flight on return, as above."""
    reload_by(rows.__setitem__, ids, chunks, rows.device)


def offload_by(gather: Callable[[Tensor], Tensor], ids: Tensor, chunk: int) -> Chunks:
    """As `offload_rows`, of the rows that `gather(ids)` returns as a new tensor `[n, ...]`."""
    return [_to_host(gather(ids[i : i + chunk])) for i in range(0, len(ids), chunk)]


def reload_by(
    scatter: Callable[[Tensor, Tensor], None], ids: Tensor, chunks: Chunks, device: torch.device
) -> None:
    """As `reload_rows`, by `scatter(ids, rows)` with rows on `device`."""
    start = 0
    for chunk in chunks:
        scatter(ids[start : start + len(chunk)], chunk.to(device, non_blocking=True))
        start += len(chunk)


def select_rows(chunks: Chunks, keep: Tensor) -> Chunks:
    """The rows of `chunks` for which `keep`, bool `[n]` on the host, is true, in order."""
    parts = keep.split_with_sizes([len(chunk) for chunk in chunks])
    return [chunk[part] for chunk, part in zip(chunks, parts, strict=True)]


def move_rows(layers: Sequence[Tensor], target: Tensor, source: Tensor) -> None:
    """Copy rows `source` to rows `target` in every layer; all are read before any is written."""
    for rows in layers:
        rows[target] = rows[source]


def synchronize(device: torch.device) -> None:
    """Wait until everything queued on `device` has finished; on the CPU nothing is queued."""
    if device.type not in ("cpu", "meta"):
        torch.get_device_module(device).synchronize(device)


def _to_host(gathered: Tensor) -> Tensor:
    # A gather has made a new tensor, so on the CPU this aliases nothing.
    if gathered.device.type == "cpu":
        return gathered
    host = torch.empty(gathered.shape, dtype=gathered.dtype, pin_memory=True)
    return host.copy_(gathered, non_blocking=True)
