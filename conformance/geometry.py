"""The sizes of one built pool, which of them are tried, and their text form."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from conformance.contract import did_you_mean
from conformance.devices import is_simulated
from conformance.pool import Kind, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """The sizes that a pool is built with.

    `size` is in tokens and excludes the reserved first page; `layers` counts the layers
    that hold attention, the first of which is `first_layer`. Sizes that a kind does not
    have are 0. `conv_shape` and `temporal_shape` are one request's state in one of
    `state_layers` layers. `chunk_tokens` is the most tokens that one host transfer takes.
    """

    kind: Kind
    attention: Kind
    size: int
    page_size: int
    layers: int
    first_layer: int
    dtype: torch.dtype
    chunk_tokens: int
    heads: int = 0
    head_dim: int = 0
    v_head_dim: int = 0
    kv_lora_rank: int = 0
    qk_rope_head_dim: int = 0
    index_head_dim: int = 0
    state_size: int = 0
    state_layers: int = 0
    conv_shape: tuple[int, ...] = ()
    temporal_shape: tuple[int, ...] = ()
    schedule: str = ""
    device: str = "cpu"

    @property
    def token_rows(self) -> int:
        """Rows of a token buffer: the tokens and the reserved page."""
        return self.size + self.page_size

    @property
    def page_rows(self) -> int:
        """Rows of a page buffer: the pages and the reserved one."""
        return self.token_rows // self.page_size

    @property
    def state_rows(self) -> int:
        """Rows of a state buffer: the states and the reserved row 0; 0 without state."""
        return self.state_size + 1 if self.state_size else 0

    @property
    def end_layer(self) -> int:
        """The last layer that holds attention, itself included."""
        return self.first_layer + self.layers - 1

    def __str__(self) -> str:
        """`size=20 page_size=4 ...`; `parse_geometry` reads it back for the same pool."""
        words = []
        for name in _TEXT_FIELDS:
            value = getattr(self, name)
            if value or name not in _OPTIONAL:
                words.append(f"{name}={_value_text(value)}")
        return " ".join(words)


_TEXT_FIELDS = tuple(
    f.name for f in dataclasses.fields(Geometry) if f.name not in ("kind", "attention", "device")
)

_OPTIONAL = {f.name for f in dataclasses.fields(Geometry) if f.default is not dataclasses.MISSING}

# Sizes are pairwise distinct and never 2, so that no axis can be taken for another; the
# first of each list is the case that hides least, and what failures shrink to.
_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "page_sizes": (5, 3, 4, 1),
    "pages": (5, 9),
    "layers": (3,),
    "first_layers": (1, 7),
    "dtypes": (torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn),
    "chunk_tokens": (8192, 5, 4, 7),
    "heads": (7, 1),
    "head_dims": (8, 16),
    "v_head_dims": (11, 13),
    "kv_lora_ranks": (17, 32),
    "qk_rope_head_dims": (8,),
    "index_head_dims": (14, 16),
    "state_sizes": (11, 5),
}
_AXES: dict[Kind, tuple[str, ...]] = {
    "token": ("heads", "head_dims", "v_head_dims"),
    "mla": ("kv_lora_ranks", "qk_rope_head_dims"),
    "dsa": ("kv_lora_ranks", "qk_rope_head_dims", "index_head_dims"),
}
_SHARED = ("dtypes", "page_sizes", "pages", "layers", "first_layers")
_FIELD = {
    "dtypes": "dtype",
    "page_sizes": "page_size",
    "first_layers": "first_layer",
    "head_dims": "head_dim",
    "v_head_dims": "v_head_dim",
    "kv_lora_ranks": "kv_lora_rank",
    "qk_rope_head_dims": "qk_rope_head_dim",
    "index_head_dims": "index_head_dim",
    "state_sizes": "state_size",
}
_STATE: dict[str, Any] = {"state_layers": 4, "conv_shape": (13, 3), "temporal_shape": (7, 3, 9)}


@lru_cache(maxsize=256)
def _geometries(
    key: tuple[Any, ...], kind: Kind, attention: Kind, device: str
) -> tuple[Geometry, ...]:
    found = _products(dict(key), kind, attention)
    return tuple(dataclasses.replace(geometry, device=device) for geometry in found)


def geometries(pool: Pool, device: str = "cpu") -> tuple[Geometry, ...]:
    """Every geometry tried for `pool`, the one that hides least first.

    `ValueError` where the pool's constraints leave none with distinct sizes.
    """
    key = tuple(sorted(pool.constraints.items()))
    found = _geometries(key, pool.kind, pool.attention, device)
    if not found:
        raise ValueError(
            f"Pool {pool.name!r}: its constraints {dict(key)} leave no geometry in which "
            "rows, pages and state rows can be told from every other size"
        )
    return found


def _products(constraints: dict[str, Any], kind: Kind, attention: Kind) -> Iterator[Geometry]:
    names = (*_SHARED, *_AXES[attention], *(("state_sizes",) if kind == "hybrid" else ()))
    names = (*names, "chunk_tokens")
    state: dict[str, Any] = _STATE if kind == "hybrid" else {}
    choices = [constraints.get(name, _DEFAULTS[name]) for name in names]
    for values in itertools.product(*choices):
        sizes = {_FIELD.get(n, n): v for n, v in zip(names, values, strict=True)}
        pages = sizes.pop("pages")
        geometry = Geometry(
            kind=kind,
            attention=attention,
            size=pages * sizes["page_size"],
            **sizes,
            **state,
        )
        if _rows_are_distinct(geometry):
            yield geometry


def _rows_are_distinct(g: Geometry) -> bool:
    """Whether the row counts differ from each other and from every other axis length."""
    rows = [g.token_rows, g.page_rows] if g.page_size > 1 else [g.token_rows]
    rows += [g.state_rows] if g.state_size else []
    axes = {g.page_size, g.layers, g.heads, g.head_dim, g.v_head_dim, g.state_layers}
    axes |= {g.kv_lora_rank, g.qk_rope_head_dim, g.kv_lora_rank + g.qk_rope_head_dim}
    axes |= {g.index_head_dim, *g.conv_shape, *g.temporal_shape}
    return len(set(rows)) == len(rows) and not axes & set(rows)


def parse_geometry(text: str, pool: Pool, device: str = "cpu") -> Geometry:
    """Read `str(geometry)` back; missing sizes are those of the pool's first geometry.

    `ValueError` names a word that is not `size=value`.
    """
    changes: dict[str, Any] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals or name not in _TEXT_FIELDS:
            raise ValueError(
                f"geometry: {word!r} is not size=value{did_you_mean(name, _TEXT_FIELDS)}"
            )
        changes[name] = _parse_value(name, value)
    if changes.get("schedule") and not is_simulated(device):
        raise ValueError(f"geometry: schedule={changes['schedule']} needs --kv-device=sim")
    geometry = dataclasses.replace(geometries(pool, device)[0], **changes)
    if geometry.size <= 0 or geometry.page_size <= 0 or geometry.size % geometry.page_size:
        raise ValueError(
            f"geometry: size={geometry.size} must be a positive multiple of "
            f"page_size={geometry.page_size}"
        )
    return geometry


def _value_text(value: Any) -> str:
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _parse_value(name: str, value: str) -> Any:
    if name == "schedule":
        return value
    if name == "dtype":
        dtype = getattr(torch, value, None)
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"geometry: {value!r} is not a torch dtype")
        return dtype
    try:
        sizes = tuple(int(part) for part in value.split("x"))
    except ValueError:
        raise ValueError(f"geometry: {name}={value!r} is not a whole number") from None
    if name.endswith("_shape"):
        return sizes
    if len(sizes) > 1:
        raise ValueError(f"geometry: {name}={value!r} is not one whole number")
    return sizes[0]
