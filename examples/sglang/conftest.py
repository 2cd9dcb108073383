"""SGLang's pools, declared: this file and `test_kv_conformance.py` are what SGLang would add."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.util import find_spec

import pytest
import sglang_on_cpu as build
import torch
from sglang.srt.mem_cache.memory_pool import KVCache

from conformance import Family, Known, Pool
from conformance.adapters.sglang import SGLang

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
ONLY_RAISES = Known("the override lacks req_pool_index, and only raises NotImplementedError")
SUB_POOL = Known("a sub-pool that its owner alone calls, by position")


def pytest_kv_pools() -> list[Pool | Family]:
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
            known={"companions_travel": NO_SCALES},
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
            known={"companions_travel": NO_SCALES},
        ),
        Pool(
            "dsa",
            build.make_dsa,
            kind="dsa",
            adapter=ENGINE,
            known={"runs_may_begin_mid_page": MID_PAGE},
            **dsa_sizes,
        ),
        Pool("hybrid", build.make_hybrid, page_sizes=[4, 1], **hybrid),
        Pool("hybrid-mla", build.make_hybrid, attention="mla", page_sizes=[4, 1], **hybrid),
    ]
    return [*pools, family()]


def family() -> Family:
    exempt = {
        "memory_pool.NoOpMHATokenToKVPool": "holds no rows: a stand-in for prefill-only models",
        "memory_pool.MHATokenToKVPoolMXFP8": "quantises in a CUDA kernel",
        "memory_pool.MHATokenToKOnlyPool": "lacks the verbs: K-only draft layers",
        "memory_pool.MiniMaxSparseKVPool": "lacks the verbs",
        "memory_pool.PageMajorMHATokenToKVPool": "rows are not contiguous: its own kind",
        "swa_memory_pool.SWAKVPool": "two id spaces: needs its allocator's mapping",
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
    shims = ExitStack()
    shims.enter_context(build.shims())
    config.add_cleanup(shims.close)
