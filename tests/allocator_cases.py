"""One small allocator of each kind, the pools behind them, and all that can be seen of both."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from reference_pools import SlidingWindowPool, StatePool, TokenPool, VirtualPool
from reference_pools.allocators import (
    HostAllocator,
    PagedAllocator,
    SlidingWindowAllocator,
    StateSlotAllocator,
    TokenAllocator,
    VirtualAllocator,
)

PAGE, SIZE = 4, 20
PAGED = ("paged", "virtual", "window")
SERVES_A_POOL = ("token", *PAGED)
KINDS = (*SERVES_A_POOL, "state", "host")


def token_pool(size: int = SIZE, page_size: int = PAGE, device: str = "cpu") -> TokenPool:
    return TokenPool(
        heads=3,
        head_dim=5,
        size=size,
        page_size=page_size,
        layers=1,
        dtype=torch.float16,
        device=device,
    )


def state_pool(size: int = SIZE) -> StatePool:
    shapes: dict[str, Any] = {"conv_shape": (3,), "temporal_shape": (1, 4)}
    return StatePool(size=size, layers=3, conv_dtype=torch.bfloat16, device="cpu", **shapes)


def window_allocator(
    full: int = SIZE, window: int = SIZE, page_size: int = PAGE
) -> SlidingWindowAllocator:
    pool = SlidingWindowPool(token_pool(full, page_size), token_pool(window, page_size))
    return SlidingWindowAllocator(pool)


def make(kind: str) -> Any:
    if kind == "token":
        return TokenAllocator(token_pool())
    if kind == "paged":
        return PagedAllocator(token_pool())
    if kind == "virtual":
        return VirtualAllocator(VirtualPool(token_pool()))
    if kind == "window":
        return window_allocator()
    if kind == "state":
        return StateSlotAllocator(state_pool())
    return HostAllocator(size=SIZE, page_size=PAGE)


def snapshot(value: Any) -> Any:
    """Every tensor and attribute under `value`, as plain data that can be compared."""
    if isinstance(value, Tensor):
        return (str(value.dtype), value.tolist())
    if isinstance(value, list | tuple):
        return [snapshot(entry) for entry in value]
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return {name: snapshot(entry) for name, entry in vars(value).items()}
    return repr(value)


def ids(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)
