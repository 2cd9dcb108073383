"""The second door: raw rows of every tensor that a pool owns, read and written as bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any, Literal

import torch
from torch import Tensor

from conformance.adapters import Adapter, Locate
from conformance.geometry import Geometry
from conformance.walk import tensors_in

Unit = Literal["token", "page", "state"]
Role = Literal["payload", "companion", "state"]

SCALE_BYTES = 4
_COMPANION_WORDS = ("scale", "index", "quant", "draft")


@dataclass(frozen=True, slots=True)
class Buffer:
    """One logical part of a pool's state.

    `rows` has one uint8 view `[n_rows, row_bytes]` per layer that shares memory with the
    pool. Cells are what ids address: a cell is a row, unless `columns` (int64
    `[page_size, width]`) says which bytes of a page row belong to the token in each slot.
    `locate` turns token ids `[n]` into cells `[n]`, -1 where there is none for the token;
    without it the ids are the cells. `queue` takes what writes to the rows, where that must
    be in order with what a device has queued.
    """

    name: str
    unit: Unit
    role: Role
    rows: tuple[Tensor, ...]
    first_layer: int = 0
    columns: Tensor | None = None
    locate: Locate | None = None
    queue: Callable[[Callable[[], object], Sequence[Tensor]], None] | None = None

    @property
    def addressed_by(self) -> Unit:
        """The ids that address its cells; tokens where the slots of a page are known."""
        return "token" if self.columns is not None else self.unit

    @property
    def width(self) -> int:
        """Bytes of one cell in one layer."""
        if self.columns is not None:
            return self.columns.shape[1]
        return self.rows[0].shape[1]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row in all layers."""
        return len(self.rows) * self.rows[0].shape[1]

    @property
    def cells(self) -> int:
        """How many cells a layer has."""
        slots = 1 if self.columns is None else self.columns.shape[0]
        return self.rows[0].shape[0] * slots

    def at(self, ids: Tensor) -> Any:
        """What to index the rows of a layer with, to reach cells `ids` `[n]`."""
        if self.columns is None:
            return (ids,)
        slots = self.columns.shape[0]
        return (ids // slots)[:, None], self.columns[ids % slots]

    def gather(self, ids: Tensor) -> Tensor:
        """The bytes of cells `ids` `[n]`: uint8 `[layers, n, width]`, a new tensor."""
        at = self.at(ids)
        return torch.stack([rows[at] for rows in self.rows])

    def scatter(self, ids: Tensor, payload: Tensor) -> None:
        """Write `payload`, uint8 `[layers, n, width]`, into cells `ids` `[n]`."""
        at = self.at(ids)

        def write() -> None:
            for rows, layer in zip(self.rows, payload.unbind(), strict=True):
                rows[at] = layer

        write() if self.queue is None else self.queue(write, self.rows)

    def fill(self, image: Tensor) -> None:
        """Write `image`, uint8 `[layers, n_rows, row_bytes]`, into every row."""
        whole = image if self.queue is None else image.clone()

        def write() -> None:
            for rows, layer in zip(self.rows, whole.unbind(), strict=True):
                rows.copy_(layer)

        write() if self.queue is None else self.queue(write, self.rows)


@dataclass(frozen=True, slots=True)
class Inventory:
    """A pool's buffers, payload first, the paths of tensors that nobody accounted for, and
    the addresses of every storage that the pool owns, on any device."""

    buffers: tuple[Buffer, ...]
    unaccounted: tuple[str, ...]
    storages: frozenset[int]


def take_inventory(pool: Any, geometry: Geometry, adapter: Adapter) -> Inventory:
    """Find the buffers of `pool` and every device tensor beside them.

    Buffers that the adapter declares are taken as they are; otherwise each tensor with
    one axis as long as the token, page or state rows is one. Raises `ValueError` for a
    declared tensor without such an axis, or whose rows are not contiguous in memory.
    """
    reached = list(tensors_in(pool))
    device_type = torch.device(geometry.device).type
    owned = {
        path: tensor
        for path, tensor in reached
        if tensor.numel()
        and tensor.device.type == device_type
        and not any(fnmatch(path, pattern) for pattern in adapter.metadata)
    }
    declared = adapter.buffers(pool)
    if declared is None:
        groups = _group(owned, geometry)
    else:
        groups = {name: list(layers) for name, layers in declared.items()}
    buffers = [
        _buffer(name, tensors, geometry, adapter.locate(pool, name))
        for name, tensors in groups.items()
    ]
    order: dict[Role, int] = {"payload": 0, "companion": 1, "state": 2}
    buffers.sort(key=lambda b: order[b.role])
    storages = frozenset(_storage(tensor) for _, tensor in reached)
    storages |= {_storage(rows) for buffer in buffers for rows in buffer.rows}
    return Inventory(tuple(buffers), tuple(_unaccounted(owned, buffers)), storages)


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _unaccounted(owned: Mapping[str, Tensor], buffers: Sequence[Buffer]) -> Iterator[str]:
    """The paths of tensors that share no byte with any buffer."""
    rows_in: dict[int, list[Tensor]] = {}
    for buffer in buffers:
        for rows in buffer.rows:
            rows_in.setdefault(_storage(rows), []).append(rows)
    for path, tensor in owned.items():
        rows_here = rows_in.get(_storage(tensor), [])
        if sum(rows.nbytes for rows in rows_here) >= tensor.untyped_storage().nbytes() > 0:
            continue  # the usual case: buffers fill the storage
        used = ByteMap(tensor)
        for rows in rows_here:
            used.bytes_of(rows).fill_(True)
        if not bool(used.bytes_of(tensor).any()):
            yield path


class ByteMap:
    """One flag for each byte of a tensor's storage."""

    def __init__(self, tensor: Tensor) -> None:
        self.flags = torch.zeros(tensor.untyped_storage().nbytes(), dtype=torch.bool)

    def bytes_of(self, tensor: Tensor) -> Tensor:
        """The flags of the bytes that `tensor`, in this storage, is made of: a view."""
        size = tensor.itemsize
        return self.flags.as_strided(
            (*tensor.shape, size),
            (*(step * size for step in tensor.stride()), 1),
            tensor.storage_offset() * size,
        )


def _row_axes(tensor: Tensor, geometry: Geometry) -> list[tuple[int, Unit]]:
    units: dict[int, Unit] = {}
    if geometry.state_rows:
        units[geometry.state_rows] = "state"
    units[geometry.page_rows] = "page"
    units[geometry.token_rows] = "token"
    return [(axis, units[n]) for axis, n in enumerate(tensor.shape) if n in units]


def _group(owned: Mapping[str, Tensor], geometry: Geometry) -> dict[str, list[Tensor]]:
    """Tensors with a row axis, by attribute: one a layer, or one with layers on its axis 0."""
    groups: dict[str, list[Tensor]] = {}
    axes = {path: _row_axes(tensor, geometry) for path, tensor in owned.items()}
    with_rows = {path: tensor for path, tensor in owned.items() if len(axes[path]) == 1}
    whole = _without_views(with_rows)
    for path, tensor in with_rows.items():
        ((axis, _),) = axes[path]
        if path in whole and axis == 0:
            groups.setdefault(re.sub(r"\[\d+\]$", "", path), []).append(tensor)
        elif path in whole and axis == 1:
            groups[path] = list(tensor)
    short = [_short_name(path) for path in groups]
    return {
        path if short.count(name) > 1 else name: tensors
        for name, (path, tensors) in zip(short, groups.items(), strict=True)
    }


def _without_views(rows: Mapping[str, Tensor]) -> set[str]:
    """The paths of tensors that are not wholly made of bytes of larger ones."""
    kept: set[str] = set()
    maps: dict[int, ByteMap] = {}
    for path, tensor in sorted(rows.items(), key=lambda item: -item[1].nbytes):
        at = _storage(tensor)
        if at not in maps:
            maps[at] = ByteMap(tensor)
        flags = maps[at].bytes_of(tensor)
        if not bool(flags.all()):
            kept.add(path)
            flags.fill_(True)
    return kept


def _short_name(path: str) -> str:
    return path.rsplit(".", 1)[-1].replace("_buffer", "")


def _buffer(
    name: str, tensors: Sequence[Tensor], geometry: Geometry, locate: Locate | None
) -> Buffer:
    located: list[tuple[int, Unit]] = [(0, "token")]
    axes = located if locate else _row_axes(tensors[0], geometry)
    if not axes or axes[0][0] != 0:
        raise ValueError(
            f"buffer {name!r}: no row axis in shape {tuple(tensors[0].shape)}; expected "
            f"{geometry.token_rows} token, {geometry.page_rows} page or "
            f"{geometry.state_rows} state rows on axis 0"
        )
    unit = axes[0][1]
    rows = tuple(_as_bytes(name, tensor) for tensor in tensors)
    is_paged = unit == "page" and tensors[0].shape[1:2] == (geometry.page_size,)
    columns = None
    if is_paged:
        width = rows[0].shape[1] // geometry.page_size
        columns = torch.arange(rows[0].shape[1], device=rows[0].device).view(-1, width)
    elif unit == "page":
        columns = _slot_columns(rows[0], geometry)
    first_layer = 0 if unit == "state" else geometry.first_layer
    role = _role(name, unit, is_paged)
    return Buffer(name, unit, role, rows, first_layer, columns, locate)


def _role(name: str, unit: Unit, is_paged: bool) -> Role:
    """`is_paged`: a page row is made of token rows, as those of keys and values may be."""
    if unit == "state":
        return "state"
    if any(word in name for word in _COMPANION_WORDS):
        return "companion"
    return "payload" if unit == "token" or is_paged else "companion"


def _as_bytes(name: str, tensor: Tensor) -> Tensor:
    try:
        return tensor.view(tensor.shape[0], -1).view(torch.uint8)
    except RuntimeError:
        raise ValueError(
            f"buffer {name!r}: a row must be contiguous in memory, got shape "
            f"{tuple(tensor.shape)} with strides {tensor.stride()}"
        ) from None


def _slot_columns(rows: Tensor, geometry: Geometry) -> Tensor | None:
    """Which bytes of a DSA page row belong to each slot: its key, and its scale behind all keys."""
    slots, key = geometry.page_size, geometry.index_head_dim
    if not key or rows.shape[1] != slots * (key + SCALE_BYTES):
        return None
    slot = torch.arange(slots)[:, None]
    keys = slot * key + torch.arange(key)
    scales = slots * key + slot * SCALE_BYTES + torch.arange(SCALE_BYTES)
    return torch.cat([keys, scales], dim=1).to(rows.device)
