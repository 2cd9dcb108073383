"""The reference pools as a downstream would declare its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from conformance import Allocator, Family, HostTier, Pool
from conformance.adapters.plain import Plain
from conformance.geometry import Geometry
from reference_pools import (
    DraftPairPool,
    DSAPool,
    HybridPool,
    KeyOnlyPool,
    KVPool,
    MLAPool,
    PageMajorPool,
    PipelinePool,
    QuantizedPool,
    ShardedPool,
    SlidingWindowPool,
    StatePool,
    TokenPool,
    VirtualPool,
    host,
)
from reference_pools.allocators import (
    HostAllocator,
    PagedAllocator,
    SlidingWindowAllocator,
    StateSlotAllocator,
    TokenAllocator,
    VirtualAllocator,
)

RANKS = 3


def make_token(geometry: Geometry, cls: type[TokenPool] = TokenPool) -> TokenPool:
    return cls(
        heads=geometry.heads,
        head_dim=geometry.head_dim,
        v_head_dim=geometry.v_head_dim,
        **_shared(geometry),
    )


def make_mla(geometry: Geometry, cls: type[MLAPool] = MLAPool) -> MLAPool:
    return cls(
        kv_lora_rank=geometry.kv_lora_rank,
        qk_rope_head_dim=geometry.qk_rope_head_dim,
        **_shared(geometry),
    )


def make_dsa(geometry: Geometry, cls: type[DSAPool] = DSAPool) -> DSAPool:
    return cls(
        kv_lora_rank=geometry.kv_lora_rank,
        qk_rope_head_dim=geometry.qk_rope_head_dim,
        index_head_dim=geometry.index_head_dim,
        **_shared(geometry),
    )


ATTENTION: dict[str, Callable[[Geometry], KVPool]] = {
    "token": make_token,
    "mla": make_mla,
    "dsa": make_dsa,
}


def make_hybrid(geometry: Geometry, cls: type[HybridPool] = HybridPool) -> HybridPool:
    return cls(ATTENTION[geometry.attention](geometry), make_state(geometry))


def make_state(geometry: Geometry, cls: type[StatePool] = StatePool) -> StatePool:
    return cls(
        size=geometry.state_size,
        layers=geometry.state_layers,
        conv_shape=geometry.conv_shape,
        temporal_shape=geometry.temporal_shape,
        conv_dtype=torch.bfloat16,
        device=geometry.device,
    )


def make_key_only(geometry: Geometry, cls: type[KeyOnlyPool] = KeyOnlyPool) -> KeyOnlyPool:
    return cls(heads=geometry.heads, head_dim=geometry.head_dim, **_shared(geometry))


def make_quantized(
    geometry: Geometry, cls: type[QuantizedPool] = QuantizedPool, *, bits: int
) -> QuantizedPool:
    return cls(
        bits=bits,
        heads=geometry.heads,
        head_dim=geometry.head_dim,
        v_head_dim=geometry.v_head_dim,
        **_shared(geometry),
    )


make_fp8 = partial(make_quantized, bits=8)
make_fp4 = partial(make_quantized, bits=4)


def make_page_major(geometry: Geometry, cls: type[PageMajorPool] = PageMajorPool) -> PageMajorPool:
    return cls(heads=geometry.heads, head_dim=geometry.head_dim, **_shared(geometry))


def make_pipeline(geometry: Geometry, cls: type[PipelinePool] = PipelinePool) -> PipelinePool:
    """Layers `first_layer + (0, 3, 4, ...)`: a gap, then neighbours."""
    offsets = [0, *range(3, geometry.layers + 2)]
    shared = _shared(geometry)
    del shared["layers"], shared["first_layer"]
    return cls(
        layer_ids=[geometry.first_layer + offset for offset in offsets],
        heads=geometry.heads,
        head_dim=geometry.head_dim,
        v_head_dim=geometry.v_head_dim,
        **shared,
    )


def make_draft_pair(geometry: Geometry, cls: type[DraftPairPool] = DraftPairPool) -> DraftPairPool:
    """The draft model has one layer."""
    return cls(make_token(geometry), make_token(replace(geometry, layers=1)))


def make_sliding_window(
    geometry: Geometry, cls: type[SlidingWindowPool] = SlidingWindowPool
) -> SlidingWindowPool:
    """Every fourth token is out of the window; the others have scattered rows in a window
    pool of just enough pages, which has one layer more than the full pool."""
    tokens = torch.arange(geometry.page_size, geometry.token_rows)
    mapped = tokens[tokens % 4 != 3]
    pages = -(-len(mapped) // geometry.page_size)
    window = replace(geometry, size=pages * geometry.page_size, layers=geometry.layers + 1)
    pool = cls(make_token(geometry), make_token(window))
    scattered = torch.randperm(len(mapped), generator=torch.Generator().manual_seed(0))
    pool.map_window(mapped, window.page_size + scattered)
    return pool


def make_sharded(geometry: Geometry, cls: type[ShardedPool] = ShardedPool) -> ShardedPool:
    return cls(
        ranks=RANKS,
        heads=geometry.heads,
        head_dim=geometry.head_dim,
        v_head_dim=geometry.v_head_dim,
        **_shared(geometry),
    )


def make_virtual(geometry: Geometry, cls: type[VirtualPool] = VirtualPool) -> VirtualPool:
    return cls(make_token(geometry))


def _shared(geometry: Geometry) -> dict[str, object]:
    return {
        "size": geometry.size,
        "page_size": geometry.page_size,
        "layers": geometry.layers,
        "first_layer": geometry.first_layer,
        "dtype": geometry.dtype,
        "device": geometry.device,
        "chunk_tokens": geometry.chunk_tokens,
    }


def kv_pools() -> list[Pool | Allocator | HostTier | Family]:
    """Every reference pool, allocator and host tier at level strict, and their family."""
    family = Family(
        KVPool,
        packages=["reference_pools"],
        source=True,
        exempt={"reference_pools.broken": "faults on purpose"},
        level="strict",
    )
    pools = _pools()
    return [family, *pools.values(), *_allocators(pools), *_host_tiers(pools)]


def _pools() -> dict[str, Pool]:
    strict = partial(Pool, level="strict")
    blocks: dict[str, Any] = {
        "head_dims": [32],
        "v_head_dims": [48],
        "dtypes": [torch.bfloat16, torch.float16],
    }
    mapped, translated = Plain(metadata=["mapping"]), Plain(metadata=["table"])
    pools = [
        strict("token", make_token, kind="token"),
        strict("mla", make_mla, kind="mla"),
        strict("dsa", make_dsa, kind="dsa"),
        strict("hybrid", make_hybrid, kind="hybrid"),
        strict("hybrid-mla", make_hybrid, kind="hybrid", attention="mla"),
        strict("hybrid-dsa", make_hybrid, kind="hybrid", attention="dsa"),
        strict("key-only", make_key_only, kind="token"),
        strict("fp8", make_fp8, kind="token", **blocks),
        strict("fp4", make_fp4, kind="token", **blocks),
        strict("page-major", make_page_major, kind="token"),
        strict("pipeline", make_pipeline, kind="token"),
        strict("draft-pair", make_draft_pair, kind="token"),
        strict("sliding-window", make_sliding_window, kind="token", adapter=mapped),
        strict("sharded", make_sharded, kind="token"),
        strict("virtual", make_virtual, kind="token", adapter=translated),
    ]
    return {pool.name: pool for pool in pools}


def _allocators(pools: dict[str, Pool]) -> list[Allocator]:
    strict = partial(Allocator, level="strict")
    token = Pool("single-rows", make_token, kind="token", page_sizes=[1])
    window, virtual = pools["sliding-window"], pools["virtual"]
    return [
        strict("token-ids", TokenAllocator, token),
        strict("paged-ids", PagedAllocator, pools["token"]),
        strict("hybrid-ids", PagedAllocator, pools["hybrid"]),
        strict("window-ids", SlidingWindowAllocator, window, kind="window"),
        strict("virtual-ids", VirtualAllocator, virtual, kind="virtual"),
        strict("state-slots", make_state_slots, pools["hybrid"], kind="slots"),
        strict("host-rows", make_host_rows, pools["token"], kind="host"),
    ]


def _host_tiers(pools: dict[str, Pool]) -> list[HostTier]:
    strict = partial(HostTier, level="strict")
    by_layer = partial(make_host_tier, layout="layer_first")
    by_page = partial(make_host_tier, layout="page_first")
    return [
        strict("token-host", by_layer, pools["token"]),
        strict("mla-host", by_page, pools["mla"]),
        strict("dsa-host", by_layer, pools["dsa"]),
        strict("fp8-host", by_page, pools["fp8"]),
        strict("fp4-host", by_layer, pools["fp4"]),
        strict("hybrid-host", by_page, pools["hybrid"]),
        strict("hybrid-dsa-host", by_page, pools["hybrid-dsa"]),
    ]


def make_host_tier(
    pool: KVPool,
    cls: type[host.HostTier] = host.HostTier,
    *,
    layout: host.Layout = "layer_first",
    waits: host.Waits | None = None,
) -> host.HostTier:
    """A host of one page less than the pool has, and of two states where it has any."""
    states = 2 if isinstance(pool, HybridPool) else None
    pages = pool.size // pool.page_size - 1
    memory = host.HostPool(pool, pages=pages, states=states, layout=layout)
    return cls(pool, memory, memory.allocator(), waits=waits)


def make_state_slots(pool: HybridPool) -> StateSlotAllocator:
    return StateSlotAllocator(pool.state)


def make_host_rows(pool: KVPool) -> HostAllocator:
    """As many host rows as there are device rows."""
    return HostAllocator(size=pool.size, page_size=pool.page_size)
