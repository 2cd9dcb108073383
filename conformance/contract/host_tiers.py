"""The clauses that a host tier keeps or breaks."""

from __future__ import annotations

from conformance.contract.clause import clause, strict

CLAUSES = (
    clause(
        "host_tier_verbs_work",
        "host tiers",
        "Backup, load, their waits and drop accept every request of whole pages.",
        "sglang 37534; vllm 50443",
    ),
    clause(
        "host_tier_restores_every_row",
        "host tiers",
        "What was backed up is loaded into any rows, byte for byte.",
        "sglang 22811, 32418; LightLLM 997",
    ),
    clause(
        "host_tier_carries_companions",
        "host tiers",
        "Index keys, scales and every other companion travel through the host tier.",
        "sglang 39089, 27504, 32176",
        "companions",
    ),
    clause(
        "host_tier_carries_state",
        "host tiers",
        "Recurrent state travels through the host tier.",
        "sglang 22493, 39089",
        "state",
    ),
    clause(
        "host_tier_leaves_other_rows_alone",
        "host tiers",
        "A load writes the rows of its request and no others, and a backup none.",
        "sglang 31060; vllm 50443",
    ),
    clause(
        "host_rows_are_as_wide",
        "host tiers",
        "Every buffer of the pool has host rows, of as many bytes as those on the device.",
        "sglang 37534, 13431, 40304, 32418",
        "row_bytes",
    ),
    clause(
        "host_rows_are_conserved",
        "host tiers",
        "A backup for which there is room takes as many host rows as it has tokens, and drop "
        "gives all of them back.",
        "sglang 29310; LMCache 3884",
    ),
    clause(
        "full_host_changes_nothing",
        "host tiers",
        "A backup for which there is no room returns None or raises, and nothing changes.",
        "sglang 34399, 16067",
    ),
    clause(
        "backup_is_complete_when_awaited",
        "host tiers",
        "When a backup was awaited, or says that it is done, its device rows may be overwritten.",
        "sglang 24226; vllm 45704; LMCache 4955",
        "simulated",
    ),
    clause(
        "load_is_complete_when_awaited",
        "host tiers",
        "When a load was awaited, or says that it is done, its rows are there, companions and "
        "state included.",
        "sglang 27550, 38031",
        "simulated",
    ),
    clause(
        "layer_is_complete_when_awaited",
        "host tiers",
        "Who waits for a layer of a load reads that layer complete, in every buffer.",
        "sglang 22811",
        "layers",
        "simulated",
    ),
    clause(
        "host_tier_timing_changes_nothing",
        "host tiers",
        "What a load brings does not depend on when queued operations finish.",
        "sglang 22811, 30899; vllm 47282; LMCache 4955",
        "simulated",
    ),
    strict(
        "rows_in_flight_are_kept",
        "host tiers",
        "Host rows with copies in flight are not given to others: drop refuses, or frees later.",
        "sglang 31715; LMCache 4955; vllm 45704",
        "simulated",
    ),
    strict(
        "copies_of_one_row_run_in_order",
        "host tiers",
        "Backups and loads of the same rows run in the order in which they were begun.",
        "sglang 31715; vllm 47282",
        "simulated",
    ),
    strict(
        "copies_outlive_their_tier",
        "host tiers",
        "Copies that are in flight when nobody refers to their tier any more are finished.",
        "LMCache 4955",
        "simulated",
    ),
    strict(
        "double_drop_is_refused",
        "host tiers",
        "Host rows that were given back raise an error when they are again; nothing changes.",
        "sglang 29310; LMCache 993",
    ),
    clause(
        "lacking_host_verbs_are_refused",
        "host tiers",
        "A verb that a host tier lacks raises NotImplementedError.",
        "sglang 33385, 36591",
        "lacks",
    ),
)
