"""What lets SGLang's pools be built on a machine without a GPU, release by release."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

# Read when they are imported: kernels of Triton run in its interpreter, and keys and values
# are moved by torch alone.
os.environ.setdefault("TRITON_INTERPRET", "1")
os.environ.setdefault("SGLANG_NATIVE_MOVE_KV_CACHE", "1")

from sglang.srt.mem_cache import memory_pool as mp
from sglang.srt.mem_cache.allocator.mamba import MambaSlotAllocator
from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.allocator.swa import SWATokenToKVPoolAllocator
from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator
from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool

from conformance.geometry import Geometry

UNSYNCHRONIZED = "KV_UNSYNCHRONIZED"
"""The environment variable with which the platform's waits are left out."""


@contextmanager
def shims(device: str = "cpu") -> Iterator[None]:
    """Undone on exit; each stands in for something that only a GPU has."""
    with ExitStack() as stack:
        if device == "sim":
            stack.enter_context(_simulated(unsynchronized=UNSYNCHRONIZED in os.environ))
        elif not torch.cuda.is_available():
            # DSA pools call it directly, whatever device they are on.
            stack.enter_context(mock.patch("torch.cuda.synchronize"))
        if hasattr(mp, "_cpu_has_amx_support"):
            # With AMX the conv state is laid out by a kernel of sgl_kernel.
            stack.enter_context(mock.patch.object(mp, "_cpu_has_amx_support", False))
        try:
            from sglang.srt.runtime_context import get_parallel
        except ImportError:
            pass  # before 0.5.21 no pool asks how it is sharded
        else:
            stack.enter_context(_unsharded(get_parallel()))
        yield


@contextmanager
def _simulated(unsynchronized: bool) -> Iterator[None]:
    """The platform waits for the simulated device, to which the suite has sent `torch.cuda`;
    or neither waits for anything, to see that this shows."""
    wait = torch.get_device_module("sim").synchronize

    def synchronize(_: object) -> None:
        if not unsynchronized:
            wait()

    with ExitStack() as stack:
        platform = type(mp.current_platform)
        stack.enter_context(mock.patch.object(platform, "synchronize", synchronize))
        if unsynchronized:
            stack.enter_context(mock.patch("torch.cuda.synchronize"))
        yield


@contextmanager
def _unsharded(parallel: Any) -> Iterator[None]:
    """No context parallelism; the ValueError of a release names the fields it does not know."""
    fields = {"attn_dcp_size": 1, "attn_dcp_rank": 0, "dcp_enabled": False}
    with ExitStack() as stack:
        try:
            stack.enter_context(parallel.override(**fields))
        except ValueError as error:
            known = {n: v for n, v in fields.items() if repr(n) not in str(error)}
            stack.enter_context(parallel.override(**known))
        yield


def exists(name: str) -> bool:
    """Whether this release has the class `module.Class` below `sglang.srt.mem_cache`."""
    module, _, cls = name.rpartition(".")
    try:
        return hasattr(import_module(f"sglang.srt.mem_cache.{module}"), cls)
    except ModuleNotFoundError:
        return False


def front(pool: Any) -> Any:
    """The allocator that SGLang puts before a pool of this kind and page size."""
    kind = PagedTokenToKVPoolAllocator if pool.page_size > 1 else TokenToKVPoolAllocator
    if isinstance(pool, SWAKVPool):
        return _WindowFront(pool)
    return _allocator(kind, pool)


class _WindowFront:
    """The forwarding half of the window allocator, without an allocator's own mapping."""

    get_cpu_copy = SWATokenToKVPoolAllocator.get_cpu_copy
    load_cpu_copy = SWATokenToKVPoolAllocator.load_cpu_copy

    def __init__(self, pool: Any) -> None:
        self._kvcache = pool


def make_window_allocator(pool: Any) -> Any:
    return _allocator(SWATokenToKVPoolAllocator, pool, size_swa=pool.size_swa)


def make_slots(pool: Any) -> Any:
    return MambaSlotAllocator(pool.mamba_pool.size, pool.device)


def _allocator(kind: type, pool: Any, **more: Any) -> Any:
    return _call(
        kind,
        size=pool.size,
        page_size=pool.page_size,
        dtype=pool.dtype,
        device=pool.device,
        kvcache=pool,
        need_sort=False,
        **more,
    )


def make_mha(g: Geometry, cls: type = mp.MHATokenToKVPool) -> Any:
    return _chunked(g, _call(cls, **_shared(g), **_heads(g), enable_memory_saver=False))


def make_mha_fp4(g: Geometry) -> Any:
    return make_mha(g, mp.MHATokenToKVPoolFP4)


def make_mla(g: Geometry, cls: type = mp.MLATokenToKVPool, **more: Any) -> Any:
    return _chunked(g, _call(cls, **_shared(g), **_latent(g), enable_memory_saver=False, **more))


def make_mla_fp4(g: Geometry) -> Any:
    return make_mla(g, mp.MLATokenToKVPoolFP4)


def make_dsa(g: Geometry) -> Any:
    return make_mla(g, mp.DSATokenToKVPool, **_index(g))


def make_hybrid(g: Geometry) -> Any:
    attention: dict[str, Any] = {"head_num": g.heads or 1, "head_dim": g.head_dim or 8}
    if g.attention != "token":
        attention |= {"use_mla": True, **_latent(g)}
    if g.attention == "dsa":
        attention |= {"use_dsa": True, **_index(g)}
    pool = _call(
        mp.HybridLinearKVPool,
        size=g.size,
        page_size=g.page_size,
        dtype=g.dtype,
        device=g.device,
        full_attention_layer_ids=[2 * i + 1 for i in range(g.layers)],
        enable_kvcache_transpose=False,
        mamba_pool=_state(g),
        **attention,
    )
    _chunked(g, pool.full_kv_pool)
    return pool


def make_swa(g: Geometry) -> Any:
    """Every fourth token is out of the window; the others' rows lie in reverse order."""
    tokens = torch.arange(g.page_size, g.token_rows)
    mapped = tokens[tokens % 4 != 3]
    size_swa = -(-len(mapped) // g.page_size) * g.page_size
    pool = _call(
        SWAKVPool,
        size=g.size,
        size_swa=size_swa,
        page_size=g.page_size,
        dtype=g.dtype,
        head_num=g.heads,
        head_dim=g.head_dim,
        swa_attention_layer_ids=[2 * i for i in range(g.layers + 1)],
        full_attention_layer_ids=[2 * i + 1 for i in range(g.layers)],
        enable_kvcache_transpose=False,
        device=g.device,
    )
    mapping = torch.zeros(g.token_rows + 1, dtype=torch.int64, device=g.device)
    mapping[mapped] = (g.page_size + torch.arange(len(mapped))).flip(0)
    mapping[-1] = -1
    pool.register_mapping(mapping)
    for part in (pool.full_kv_pool, pool.swa_kv_pool):
        _chunked(g, part)
    return pool


def _state(g: Geometry) -> Any:
    shape = SimpleNamespace(conv=[g.conv_shape], temporal=g.temporal_shape)
    dtype = SimpleNamespace(conv=torch.bfloat16, temporal=torch.float32)
    return _call(
        mp.MambaPool,
        size=g.state_size,
        spec_state_size=g.state_size,
        cache_params=SimpleNamespace(shape=shape, dtype=dtype),
        mamba_layer_ids=[2 * i for i in range(g.state_layers)],
        device=g.device,
    )


def _shared(g: Geometry) -> dict[str, Any]:
    return {
        "size": g.size,
        "page_size": g.page_size,
        "dtype": g.dtype,
        "layer_num": g.layers,
        "device": g.device,
        "start_layer": g.first_layer,
        "end_layer": g.end_layer,
    }


def _heads(g: Geometry) -> dict[str, Any]:
    return {"head_num": g.heads, "head_dim": g.head_dim, "v_head_dim": g.v_head_dim}


def _latent(g: Geometry) -> dict[str, Any]:
    return {"kv_lora_rank": g.kv_lora_rank, "qk_rope_head_dim": g.qk_rope_head_dim}


def _index(g: Geometry) -> dict[str, Any]:
    return {
        "index_head_dim": g.index_head_dim,
        "kv_cache_dim": g.kv_lora_rank + g.qk_rope_head_dim,
    }


def _chunked(g: Geometry, pool: Any) -> Any:
    pool.cpu_offloading_chunk_size = g.chunk_tokens
    return pool


def _call(cls: type, **keywords: Any) -> Any:
    """`cls(**keywords)`, without those that this release does not know."""
    known = inspect.signature(cls.__init__).parameters
    return cls(**{name: value for name, value in keywords.items() if name in known})
