"""Host tiers of every kind of reference pool, and what their device rows must hold."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from conformance import Pool
from conformance.geometry import geometries
from reference_pools import KVPool
from reference_pools.declarations import kv_pools
from reference_pools.host import HostPool, HostTier, Layout, Waits

KINDS = ("token", "key-only", "pipeline", "mla", "dsa", "fp8", "fp4")
HYBRIDS = ("hybrid", "hybrid-mla", "hybrid-dsa")
LAYOUTS: tuple[Layout, ...] = ("layer_first", "page_first")
PAGE = 4
POOLS = {pool.name: pool for pool in kv_pools() if isinstance(pool, Pool)}


def make_device(kind: str, seed: int = 0, **changes: Any) -> Any:
    """A device pool of 9 pages whose chunk is one page, with other bytes in every row."""
    page_size = changes.get("page_size", PAGE)
    sizes = {"page_size": page_size, "size": 9 * page_size, "chunk_tokens": 5} | changes
    pool = POOLS[kind].make(dataclasses.replace(geometries(POOLS[kind])[0], **sizes))
    scramble(pool, seed)
    return pool


def make_tier(
    kind: str = "token",
    *,
    pages: int = 5,
    states: int | None = None,
    layout: Layout = "layer_first",
    waits: Waits | None = None,
    **changes: Any,
) -> HostTier:
    device = make_device(kind, **changes)
    host = HostPool(device, pages=pages, states=states, layout=layout)
    return HostTier(device, host, host.allocator(), waits=waits)


def scramble(pool: KVPool, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for layers in pool.buffers().values():
        for rows in layers:
            rows.copy_(torch.randint(0, 100, rows.shape, generator=generator).to(rows.dtype))


def snapshot(pool: KVPool) -> dict[str, list[Tensor]]:
    return {name: [rows.clone() for rows in layers] for name, layers in pool.buffers().items()}


def host_snapshot(tier: HostTier) -> list[Tensor]:
    return [buffer.memory.clone() for buffer in tier.host_pool.buffers.values()]


def same(left: dict[str, list[Tensor]], right: dict[str, list[Tensor]]) -> bool:
    return left.keys() == right.keys() and all(
        torch.equal(a, b) for name in left for a, b in zip(left[name], right[name], strict=True)
    )


def rows_of(name: str, tokens: Tensor, states: Tensor | None, page_size: int) -> Tensor:
    """The rows that a request has in a buffer."""
    if name in ("conv", "temporal"):
        return ids() if states is None else states.reshape(-1)
    return tokens[::page_size] // page_size if name == "index_k" else tokens


def moved(
    after: dict[str, list[Tensor]],
    before: dict[str, list[Tensor]],
    saved: tuple[Tensor, Tensor | None],
    loaded: tuple[Tensor, Tensor | None],
    page_size: int = PAGE,
) -> dict[str, list[Tensor]]:
    """`after`, with the rows `loaded` as the rows `saved` were in `before`."""
    expected = {name: [rows.clone() for rows in layers] for name, layers in after.items()}
    for name, layers in expected.items():
        source, target = (rows_of(name, *side, page_size) for side in (saved, loaded))
        for rows, old in zip(layers, before[name], strict=True):
            rows[target] = old[source]
    return expected


def ids(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


def pages(*numbers: int, tokens: int | None = None, page_size: int = PAGE) -> Tensor:
    """The ids of whole pages, or the first `tokens` of them."""
    return torch.cat([torch.arange(page_size) + page * page_size for page in numbers])[:tokens]
