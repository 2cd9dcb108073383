"""The clauses on what is still in flight, and on device memory; a simulated device shows them."""

from __future__ import annotations

from conformance.contract.clause import clause, strict

CLAUSES = (
    clause(
        "copy_is_complete_on_return",
        "timing",
        "When offload returns, or the wait that its adapter names, the host can read the copy.",
        "vllm 45704, 47282; sglang 24226",
        "simulated",
    ),
    strict(
        "reload_is_complete_on_return",
        "timing",
        "When reload returns, every stream sees its rows, and the copy may be overwritten.",
        "vllm 47282; sglang 30899, 31715",
        "simulated",
    ),
    clause(
        "timing_changes_nothing",
        "timing",
        "What rows and copies hold does not depend on when queued operations finish.",
        "vllm 45704; sglang 22811, 30899; LMCache 4955",
        "simulated",
    ),
    clause(
        "transfers_leak_nothing",
        "timing",
        "A thousand offloads and reloads leave as much device memory in use as the first.",
        "LMCache 993, 4955",
        "simulated",
    ),
    strict(
        "transfer_memory_is_bounded",
        "timing",
        "Device memory that a transfer needs is bounded by the chunk, not by the request.",
        "sglang (cpu_offloading_chunk_size)",
        "simulated",
    ),
    strict(
        "nothing_needs_no_memory",
        "timing",
        "Offload and reload of no token allocate no row on the device.",
        "sglang (cpu_offloading_chunk_size)",
        "simulated",
    ),
    strict(
        "out_of_memory_changes_nothing",
        "timing",
        "A transfer that runs out of memory leaves other rows and its copy as they were, leaks "
        "nothing, and can be repeated.",
        "sglang (cpu_offloading_chunk_size)",
        "simulated",
    ),
)
