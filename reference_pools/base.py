"""The root class of the family: the verbs, the row layout, and what is refused."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from reference_pools.transfer import Chunks, move_rows, synchronize

FP8_DTYPES = (torch.float8_e4m3fn, torch.float8_e5m2)


@dataclass(frozen=True, slots=True)
class HostCopy:
    """What `get_cpu_copy` returns: rows on the host, and what they were taken from.

    `layout` describes the rows (dtype and shape per buffer and layer), so that a copy is
    only ever loaded into a pool of the same shape. `chunks[buffer][layer]` holds the rows;
    `parts` are the copies of the pools that a composed pool is made of.
    """

    layout: tuple[tuple[object, ...], ...]
    tokens: int
    start_slot: int
    chunks: dict[str, list[Chunks]]
    state: HostCopy | None = None
    parts: dict[str, HostCopy] = field(default_factory=dict)


class KVPool(abc.ABC):
    """Device memory for the KV cache of `size` tokens in every layer.

    A buffer is a list of tensors, one per layer, of shape `[size + page_size, ...]`: a row
    is a token. The first page (rows `0 .. page_size - 1`) takes the writes of padded
    tokens and is never given to a request, so legal ids are `page_size .. size + page_size - 1`.

    Subclasses implement `buffers`, `get_cpu_copy` and `load_cpu_copy`. A subclass that adds
    a buffer must carry it in both verbs.

    A verb ends with a `wait`: its copies are queued on the device and finish later. `unwaited`
    names the waits that are left out, none in a correct pool.
    """

    unwaited: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        *,
        size: int,
        page_size: int,
        layers: int,
        dtype: torch.dtype,
        device: str | torch.device,
        first_layer: int = 0,
        chunk_tokens: int = 8192,
    ) -> None:
        """Fix the geometry; `ValueError` for a size that is not a positive number of pages."""
        if size <= 0 or page_size <= 0 or size % page_size:
            raise ValueError(f"size {size} is not a positive multiple of page_size {page_size}")
        if layers <= 0 or chunk_tokens <= 0 or first_layer < 0:
            raise ValueError(
                f"layers {layers} and chunk_tokens {chunk_tokens} must be positive, "
                f"first_layer {first_layer} must not be negative"
            )
        self.size = size
        self.page_size = page_size
        self.layers = layers
        self.first_layer = first_layer
        self.dtype = dtype
        # index_put is not implemented for the fp8 dtypes, so their bytes are stored as uint8.
        self.store_dtype = torch.uint8 if dtype in FP8_DTYPES else dtype
        self.device = torch.device(device)
        self.chunk_tokens = chunk_tokens

    @abc.abstractmethod
    def buffers(self) -> dict[str, list[Tensor]]:
        """Every tensor that holds request data, by buffer name, one per layer, rows first."""

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        """Offload the rows `indices` (integer tensor `[n]`) and the state rows `mamba_indices`.

        Raises `TypeError`, `IndexError` or `ValueError`, naming the value, for ids that the
        pool cannot serve; nothing is changed. The pool is never changed.
        """
        raise NotImplementedError

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        """Reload a copy into the rows `indices`: token i of the copy goes to `indices[i]`.

        The copy can be loaded again. Raises as `get_cpu_copy` does, and `ValueError` for a
        copy that does not fit, before anything is changed.
        """
        raise NotImplementedError

    def move_kv_cache(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        """Copy the tokens at `src_loc` to `tgt_loc`, both `[n]`, disjoint, in every buffer.

        Raises as `check_pairs` does, before anything is changed.
        """
        self.check_move(tgt_loc, src_loc)
        for layers in self.token_buffers().values():
            move_rows(layers, tgt_loc, src_loc)
        self.wait("move")

    def wait(self, point: str) -> None:
        """Wait until everything queued on the device has finished, unless `unwaited`."""
        if point not in self.unwaited:
            synchronize(self.device)

    def geometry(self) -> dict[str, Any]:
        """The arguments of `KVPool`, for a pool that is composed of this one."""
        return {
            "size": self.size,
            "page_size": self.page_size,
            "layers": self.layers,
            "first_layer": self.first_layer,
            "dtype": self.dtype,
            "device": self.device,
            "chunk_tokens": self.chunk_tokens,
        }

    @property
    def token_rows(self) -> int:
        """Rows of a token buffer, the reserved page included."""
        return self.size + self.page_size

    def token_buffers(self) -> dict[str, list[Tensor]]:
        """The buffers whose row is a token; all of them unless a subclass says otherwise."""
        return self.buffers()

    def allocate(self, *row_shape: int, rows: int | None = None) -> list[Tensor]:
        """One zeroed tensor `[rows, *row_shape]` per layer; `rows` defaults to `token_rows`."""
        shape = (self.token_rows if rows is None else rows, *row_shape)
        return [
            torch.zeros(shape, dtype=self.store_dtype, device=self.device)
            for _ in range(self.layers)
        ]

    def layout(self) -> tuple[tuple[object, ...], ...]:
        """What a host copy must agree on with the pool that loads it."""
        return tuple(
            (name, self.dtype, len(layers), layers[0].dtype, *layers[0].shape[1:])
            for name, layers in self.buffers().items()
        )

    def check_tokens(self, indices: Tensor) -> None:
        """Refuse token ids that this pool does not have."""
        check_ids("indices", indices, self.page_size, self.token_rows)

    def check_move(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        """Refuse a move that this pool cannot make."""
        check_pairs("tgt_loc", tgt_loc, "src_loc", src_loc, self.page_size, self.token_rows)

    def check_copy(self, copy: HostCopy, indices: Tensor) -> None:
        """Refuse a copy of another geometry, or of another number of tokens."""
        if not isinstance(copy, HostCopy):
            raise TypeError(f"expected a HostCopy, got {type(copy).__name__}")
        if copy.layout != self.layout():
            raise ValueError(f"copy has layout {copy.layout}, this pool has {self.layout()}")
        if copy.tokens != len(indices):
            raise ValueError(f"copy holds {copy.tokens} tokens, but {len(indices)} ids were given")


def check_ids(name: str, ids: Tensor, first: int, end: int) -> None:
    """Refuse `ids` unless it is a 1-D int32 or int64 tensor of distinct values in `[first, end)`.

    Rows `0 .. first - 1` are reserved for padding; two tokens in one row would be written in
    an order that `index_put` leaves open. Raises `TypeError` for the tensor's type,
    `ValueError` for its shape or an id that appears twice, `IndexError` for a value.
    """
    if not isinstance(ids, Tensor):
        raise TypeError(f"{name} must be a tensor of ids, got {type(ids).__name__}")
    if ids.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"{name} must be int32 or int64, got {ids.dtype}")
    if ids.dim() != 1:
        raise ValueError(f"{name} must have one dimension, got shape {tuple(ids.shape)}")
    if not len(ids):
        return
    on_host = ids.cpu()  # one wait instead of one for each look
    low, high = (int(bound) for bound in torch.aminmax(on_host))
    if high >= end:
        raise IndexError(f"{name} contains {high}, but the last row is {end - 1}")
    if low < 0:
        raise IndexError(f"{name} contains {low}; ids are not negative")
    if low < first:
        raise IndexError(f"{name} contains {low}, but rows below {first} are reserved for padding")
    counts = torch.bincount(on_host)
    if int(counts.max()) > 1:
        raise ValueError(f"{name} contains {int(counts.argmax())} more than once")


def check_pairs(
    target_name: str, targets: Tensor, source_name: str, sources: Tensor, first: int, end: int
) -> None:
    """Refuse to copy rows `sources` to rows `targets` unless both are legal ids, as many of
    one as of the other, and none is in both.

    A kernel reads and writes the rows in any order (sglang, `copy_all_layer_kv_cache`).
    Raises as `check_ids` does, and `ValueError` for the number of ids or an id in both.
    """
    check_ids(target_name, targets, first, end)
    check_ids(source_name, sources, first, end)
    if len(targets) != len(sources):
        raise ValueError(f"{len(targets)} targets for {len(sources)} sources")
    targets, sources = targets.cpu(), sources.cpu()
    shared = targets[torch.isin(targets, sources)]
    if len(shared):
        raise ValueError(f"{int(shared[0])} is both in {target_name} and in {source_name}")


def refuse_state(mamba_indices: Tensor | None) -> None:
    """Refuse state ids: dropping them silently would lose the request's state."""
    if mamba_indices is not None:
        raise ValueError(f"this pool holds no state, but was given mamba_indices {mamba_indices}")
