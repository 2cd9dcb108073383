"""The reference pools as a downstream would declare its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from conformance import Family, Pool
from conformance.geometry import Geometry
from reference_pools import DSAPool, HybridPool, KVPool, MLAPool, StatePool, TokenPool


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


def kv_pools() -> list[Pool | Family]:
    """Every reference pool at level strict, and their family."""
    strict = partial(Pool, level="strict")
    return [
        Family(
            KVPool,
            packages=["reference_pools"],
            exempt={"reference_pools.broken": "faults on purpose"},
            level="strict",
        ),
        strict("token", make_token, kind="token"),
        strict("mla", make_mla, kind="mla"),
        strict("dsa", make_dsa, kind="dsa"),
        strict("hybrid", make_hybrid, kind="hybrid"),
    ]
