"""SGLang's pools, declared: this file and `test_kv_conformance.py` are what SGLang would add."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import pytest
import sglang_on_cpu as build
import torch
from sglang._version import __version__
from sglang.srt.mem_cache.memory_pool import KVCache

from conformance import Allocator, Family, Known, Pool
from conformance.adapters.sglang import SGLang, SGLangAllocator
from conformance.timing import prepare

MODULES = [
    f"sglang.srt.mem_cache.{name}"
    for name in (
        "memory_pool",
        "swa_memory_pool",
        "deepseek_v4_memory_pool",
        "hisparse_memory_pool",
        "unified_memory_pool",
        "unified_draft_pool",
        "page_interleave_pool",
        "minimax_m3_nvfp4_pool",
        "dsa_cache_layer_split",
    )
    if find_spec(f"sglang.srt.mem_cache.{name}")
]

ENGINE = SGLang(build.front)
FRONT = SGLangAllocator()
BF16 = [torch.bfloat16]
FP8 = [torch.float8_e4m3fn, torch.float8_e5m2]

MID_PAGE = Known(
    "index keys are found by every page_size-th id, so a run that begins inside a page loses "
    "its last page's keys; today's callers pass whole pages",
    witness="write r0 at 65; offload r0 as c0; overwrite; reload c0 at 65",
)
SCALAR_STATE = Known(
    "with a 0-dim mamba_indices the copy is a view of the state where the pool is on the CPU; "
    "on CUDA it is a copy",
    witness="write r0 at 4 state 1; offload r0 as c0 state 1 scalar",
)
NO_SCALES = Known(
    "FP4 pools inherit verbs that copy the payload and not its scale rows; no public report",
    witness="write r0 at 4; offload r0 as c0; overwrite; reload c0 at 4",
)
MOVES_PAGES_BY_TOKEN = Known(
    "the index buffer, whose rows are pages, is addressed with token ids",
    witness="write r0 at 64..66; move r0[2] to [0]",
    link="https://github.com/sgl-project/sglang/issues/31060",
)
MOVES_NO_SCALES = Known(
    "FP4 pools inherit a move that leaves the scale rows behind; no public report",
    witness="write r0 at 4..6; move r0[2] to [0]",
)
MOVE_RAISES = Known(
    "the inherited move reads native_k_scale_buffer, which FP4 pools do not have; no public report",
    witness="write r0 at 4..6; move r0[2] to [0]",
)
KEEPS_CALLERS_IDS = Known(
    "a free group holds the tensors of ids that callers passed, which are views of the "
    "request table, until it ends; later releases take a copy; no public report",
    witness="extend r0 by 1; begin group; free r0; overwrite ids; end group; extend r1 by 5",
)
CRASHES = Known(
    "the kernel reads past the end of the free list before the capacity is looked at",
    witness="extend r0 by 20; extend r1 by 1",
    link="https://github.com/sgl-project/sglang/issues/34399",
)
FREES_WINDOW_TWICE = Known(
    "a page of the window is freed with its first token, while the other tokens of the page "
    "keep their mapping entries and free it again later",
    witness="extend r0 by 4; slide r0[0:3]",
    link="https://github.com/sgl-project/sglang/issues/27779",
)
LEAKS_FULL_PAGE = Known(
    "decoding takes a full page before it finds that no window page is free, and does not give "
    "it back; the scheduler looks at both first; no public report",
    witness="extend r0 by 16; extend r0 by 1",
)
ONLY_RAISES = Known("the override lacks req_pool_index, and only raises NotImplementedError")
SUB_POOL = Known("a sub-pool that its owner alone calls, by position")

RELEASE = tuple(int(part) for part in __version__.split(".")[:3])
DSA_MOVES = {} if RELEASE >= (0, 5, 23) else {"move_accepts_every_token": MOVES_PAGES_BY_TOKEN}


def pytest_kv_pools(config: pytest.Config) -> list[Pool | Allocator | Family]:
    isolated = config.getoption("--kv-device") == "cpu"
    token = {"kind": "token", "adapter": ENGINE}
    hybrid = {"kind": "hybrid", "adapter": ENGINE, "dtypes": BF16}
    hybrid["known"] = {"copy_is_its_own_memory": SCALAR_STATE}
    dsa_sizes = {"page_sizes": [64], "index_head_dims": [128], "dtypes": BF16}
    pools = [
        Pool("mha", build.make_mha, page_sizes=[1], dtypes=BF16, **token),
        Pool("mha-page4", build.make_mha, page_sizes=[4], dtypes=BF16, **token),
        Pool("mha-v-head-dim", build.make_mha, v_head_dims=[13], head_dims=[8], **token),
        Pool("mha-fp8", build.make_mha, page_sizes=[4, 1], dtypes=FP8, **token),
        Pool(
            "mha-fp4",
            build.make_mha_fp4,
            page_sizes=[4],
            dtypes=BF16,
            head_dims=[32],
            v_head_dims=[32],
            known={"companions_travel": NO_SCALES, **fp4_moves()},
            **token,
        ),
        Pool("mla", build.make_mla, kind="mla", adapter=ENGINE, page_sizes=[4, 1]),
        Pool(
            "mla-fp4",
            build.make_mla_fp4,
            kind="mla",
            adapter=ENGINE,
            page_sizes=[4],
            dtypes=BF16,
            kv_lora_ranks=[48],
            qk_rope_head_dims=[16],
            known={"companions_travel": NO_SCALES, "move_carries_companions": MOVES_NO_SCALES},
        ),
        Pool(
            "dsa",
            build.make_dsa,
            kind="dsa",
            adapter=ENGINE,
            known={"runs_may_begin_mid_page": MID_PAGE, **DSA_MOVES},
            **dsa_sizes,
        ),
        Pool("swa", build.make_swa, page_sizes=[1], dtypes=BF16, **token),
        Pool("swa-page4", build.make_swa, page_sizes=[4], dtypes=BF16, **token),
        Pool("hybrid", build.make_hybrid, page_sizes=[4, 1], **hybrid),
        Pool("hybrid-mla", build.make_hybrid, attention="mla", page_sizes=[4, 1], **hybrid),
    ]
    return [*pools, *allocators({pool.name: pool for pool in pools}, isolated), family()]


def fp4_moves() -> dict[str, Known]:
    """What is known of `MHATokenToKVPoolFP4.move_kv_cache`."""
    if RELEASE < (0, 5, 23):
        return {"move_carries_companions": MOVES_NO_SCALES}
    return {"move_accepts_every_token": MOVE_RAISES}


def allocators(pools: dict[str, Pool], isolated: bool) -> list[Allocator]:
    token: dict[str, Any] = {"adapter": FRONT, "lacks": ["sharing"], "known": {}}
    if RELEASE < (0, 5, 23):
        token["known"] = {"ids_keep_their_values": KEEPS_CALLERS_IDS}
    paged, paged_window = token, token | {"kind": "window"}
    paged_window["known"] = token["known"] | {"exhaustion_changes_nothing": LEAKS_FULL_PAGE}
    if RELEASE < (0, 5, 22):
        crash = token["known"] | {"exhaustion_changes_nothing": CRASHES}
        paged = token | {"known": crash, "isolated": isolated}
        paged_window["isolated"] = isolated
    if RELEASE < (0, 5, 14):
        paged_window["known"] |= {"mapping_dies_with_its_page": FREES_WINDOW_TWICE}
    window = token | {"kind": "window"}
    slots = {"kind": "slots", "adapter": FRONT, "lacks": ["sharing", "groups", "zeroing"]}
    return [
        Allocator("token-ids", build.front, pools["mha"], **token),
        Allocator("paged-ids", build.front, pools["mha-page4"], **paged),
        Allocator("window-ids", build.make_window_allocator, pools["swa"], **window),
        Allocator(
            "paged-window-ids", build.make_window_allocator, pools["swa-page4"], **paged_window
        ),
        Allocator("mamba-slots", build.make_slots, pools["hybrid"], **slots),
    ]


def family() -> Family:
    exempt = {
        "memory_pool.NoOpMHATokenToKVPool": "holds no rows: a stand-in for prefill-only models",
        "memory_pool.MHATokenToKVPoolMXFP8": "quantises in a CUDA kernel",
        "memory_pool.MHATokenToKOnlyPool": "lacks the verbs: K-only draft layers",
        "memory_pool.MiniMaxSparseKVPool": "lacks the verbs",
        "memory_pool.PageMajorMHATokenToKVPool": "rows are not contiguous: its own kind",
        "deepseek_v4_memory_pool.DeepSeekV4IndexerPool": "lacks the verbs",
        "deepseek_v4_memory_pool.DeepSeekV4SingleKVPool": "lacks the verbs",
        "deepseek_v4_memory_pool.DeepSeekV4TokenToKVPool": "lacks the verbs (sglang 33385)",
        "deepseek_v4_memory_pool.DeepSeekV4UniformFP8KVPool": "lacks the verbs",
        "deepseek_v4_memory_pool.HiSparseC4DevicePool": "lacks the verbs: raises (sglang 36591)",
        "hisparse_memory_pool.HiSparseDSATokenToKVPool": "lacks the verbs: raises (sglang 36591)",
        "hisparse_memory_pool.HiSparseMHAMainPool": "lacks the verbs: raises",
        "dsa_cache_layer_split.LayerSplitDSATokenToKVPool": "needs a process group",
        "minimax_m3_nvfp4_pool.MiniMaxM3Nvfp4IndexKPool": "a sub-pool of the next two",
        "minimax_m3_nvfp4_pool.MiniMaxM3Nvfp4KVPool": "quantises in a CUDA kernel",
        "minimax_m3_nvfp4_pool.MiniMaxM3Nvfp4MainKVPool": "quantises in a CUDA kernel",
        "page_interleave_pool.PageInterleaveDSATokenToKVPool": "needs a process group",
        "page_interleave_pool.PageInterleaveMHATokenToKVPool": "needs a process group",
        "page_interleave_pool.PageInterleaveMLATokenToKVPool": "needs a process group",
        "unified_draft_pool.UnifiedDraftKVPool": "lacks the verbs: raises",
        "unified_draft_pool.UnifiedDraftSWAKVPool": "lacks the verbs: raises",
        "unified_memory_pool.UnifiedHybridLinearKVPool": "virtual ids: needs its allocator",
        "unified_memory_pool.UnifiedMHATokenToKVPool": "virtual ids: needs its allocator",
        "unified_memory_pool.UnifiedMLATokenToKVPool": "virtual ids: needs its allocator",
        "unified_memory_pool.UnifiedSWAKVPool": "virtual ids: needs its allocator",
    }
    keyword = "override_accepts_every_keyword"
    return Family(
        KVCache,
        packages=MODULES,
        exempt={
            f"sglang.srt.mem_cache.{name}": reason
            for name, reason in exempt.items()
            if build.exists(name)
        },
        known={
            name.rpartition(".")[2]: {keyword: known}
            for name, known in (
                ("unified_draft_pool.UnifiedDraftKVPool", ONLY_RAISES),
                ("page_interleave_pool.PageInterleaveDSATokenToKVPool", ONLY_RAISES),
                ("minimax_m3_nvfp4_pool.MiniMaxM3Nvfp4IndexKPool", SUB_POOL),
            )
            if build.exists(name)
        },
    )


def pytest_configure(config: pytest.Config) -> None:
    device = config.getoption("--kv-device")
    if device == "sim":
        prepare()
    shims = ExitStack()
    shims.enter_context(build.shims(device))
    config.add_cleanup(shims.close)
