"""The families of reference pools whose ids are tokens, and where each of them holds a token."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from conformance import Pool
from conformance.geometry import Geometry, geometries
from reference_pools import HostCopy, KVPool, PageMajorPool
from reference_pools.declarations import kv_pools

FAMILIES = {
    pool.name: pool for pool in kv_pools() if isinstance(pool, Pool) and pool.kind == "token"
}
PAGE, SIZE = 4, 20


def geometry_of(family: str, **changes: Any) -> Geometry:
    sizes = {"size": SIZE, "page_size": PAGE, "chunk_tokens": 5} | changes
    return dataclasses.replace(geometries(FAMILIES[family])[0], **sizes)


def make(family: str, **changes: Any) -> Any:
    pool = FAMILIES[family].make(geometry_of(family, **changes))
    randomize(pool, seed=0)
    return pool


def randomize(pool: KVPool, seed: int) -> None:
    """Other bytes in every row of every buffer."""
    generator = torch.Generator().manual_seed(seed)
    for rows in all_rows(pool):
        rows.copy_(torch.randint(0, 100, rows.shape, generator=generator).to(rows.dtype))


def all_rows(pool: KVPool) -> list[Tensor]:
    return [rows for layers in pool.buffers().values() for rows in layers]


def snapshot(pool: KVPool) -> list[Tensor]:
    return [rows.clone() for rows in all_rows(pool)]


def same(left: list[Tensor], right: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def ids(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


SAVED, LOADED = ids(5, 23, 10, 6, 16, 9, 21), ids(14, 4, 13, 20, 7, 19, 22)


# -- the second door: tokens found by `locate`, one at a time -----------------------------


def find(pool: KVPool, name: str, token: int) -> Any:
    """Where a buffer holds a token, None where it does not."""
    if isinstance(pool, PageMajorPool):
        return token // PAGE, token % PAGE
    located = pool.locate(name, ids(token)) if hasattr(pool, "locate") else None
    row = token if located is None else int(located[0])
    return None if row < 0 else row


def kind_of(name: str) -> str:
    """The same for buffers that hold the same of different tokens."""
    return name.partition("@")[0]


def read(pool: KVPool, token: int) -> dict[str, list[Tensor]]:
    """The bytes of a token in every layer, by kind of buffer."""
    return {
        kind_of(name): [layer[at].clone() for layer in layers]
        for name, layers in pool.buffers().items()
        if (at := find(pool, name, token)) is not None
    }


def copy_tokens(pool: KVPool, held: list[dict[str, list[Tensor]]], tokens: Tensor) -> list[Tensor]:
    """The rows of a pool in which `tokens` hold what `read` returned, as far as they can."""
    before = snapshot(pool)
    for values, token in zip(held, tokens.tolist(), strict=True):
        for name, layers in pool.buffers().items():
            at = find(pool, name, token)
            if at is not None and kind_of(name) in values:
                for layer, value in zip(layers, values[kind_of(name)], strict=True):
                    layer[at] = value
    expected = snapshot(pool)
    for rows, was in zip(all_rows(pool), before, strict=True):
        rows.copy_(was)
    return expected


def read_all(pool: KVPool, tokens: Tensor) -> list[dict[str, list[Tensor]]]:
    return [read(pool, token) for token in tokens.tolist()]


def tensors_of(copy: HostCopy) -> list[Tensor]:
    own = [t for layers in copy.chunks.values() for chunks in layers for t in chunks]
    return own + [t for part in copy.parts.values() for t in tensors_of(part)]
