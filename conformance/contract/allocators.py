"""The clauses that an allocator keeps or breaks."""

from __future__ import annotations

from conformance.contract.clause import clause, strict

CLAUSES = (
    clause(
        "ids_are_conserved",
        "allocators",
        "After every step, what is free and what is owned add up to what there was at first.",
        "sglang 7130, 20010, 4977, 16067; sglang-jax 70; LMCache 3884; FastDeploy 7890",
    ),
    clause(
        "ids_are_handed_out_once",
        "allocators",
        "No id is handed out while somebody owns it.",
        "sglang 25385; vllm 37076, 42571; LMCache 993",
    ),
    clause(
        "ids_name_rows",
        "allocators",
        "An allocation returns as many ids as were asked for, all rows of the pool, none reserved.",
        "sglang 38519, 38997; vllm 50443",
    ),
    clause(
        "pages_run_slot_after_slot",
        "allocators",
        "A request fills its last page before it gets another, and enters pages at slot 0.",
        "sglang 5221, 4977",
    ),
    clause(
        "capacity_can_be_used",
        "allocators",
        "An allocation for which enough is free succeeds.",
        "llama.cpp 17982; TensorRT-LLM 15018",
    ),
    clause(
        "exhaustion_changes_nothing",
        "allocators",
        "An allocation that does not fit returns None or raises, and nothing changes.",
        "sglang 34399, 16067",
    ),
    clause(
        "ids_keep_their_values",
        "allocators",
        "Ids keep their values whatever the allocator does later, and it keeps its own.",
        "Megatron-LM 6584; sglang 21624",
    ),
    strict(
        "ids_are_their_own_memory",
        "allocators",
        "Ids share no memory with the allocator.",
        "sglang 21624; Megatron-LM 6584",
    ),
    clause(
        "freeing_nothing_is_legal",
        "allocators",
        "Freeing no ids succeeds and changes nothing.",
        "LMCache 2768",
    ),
    clause(
        "clear_resets_everything",
        "allocators",
        "After clear everything is free, also what a free group holds, and no mapping is left.",
        "LMCache 993; sglang 25385",
    ),
    clause(
        "free_groups_free_at_the_end",
        "allocators",
        "What is freed in a free group is free when the group ends, each id once.",
        "sglang 25385; LMCache 993",
        "groups",
    ),
    clause(
        "shared_ids_outlive_one_owner",
        "allocators",
        "A shared id stays owned until its last owner frees it, and is free then, in any order.",
        "LMCache 1130, 3884",
        "sharing",
    ),
    clause(
        "mapping_dies_with_its_page",
        "allocators",
        "When a window row is freed its mapping entry is gone, and it is freed once.",
        "sglang 25385, 27779, 38519",
        "window",
    ),
    clause(
        "new_state_is_zero",
        "allocators",
        "A state row is zero in every state buffer when it is handed out.",
        "vllm 56524",
        "zeroing",
    ),
    clause(
        "translation_follows_compaction",
        "allocators",
        "After compaction, each id translates to the row that holds its bytes.",
        "sglang 37416",
        "virtual",
    ),
    clause(
        "allocator_forwards_the_verbs",
        "allocators",
        "Offload and reload through the allocator reach the pool, with every optional keyword.",
        "sglang 7819, 25828",
        "offload",
    ),
    strict(
        "double_free_is_refused",
        "allocators",
        "Ids that were freed already raise an error when they are freed again; nothing changes.",
        "sglang 29310; LMCache 993",
    ),
    strict(
        "duplicate_free_is_refused",
        "allocators",
        "An id given twice in one free raises an error; nothing changes.",
        "vllm 42571",
    ),
    strict(
        "foreign_ids_are_not_freed",
        "allocators",
        "Freeing ids that were never handed out raises an error; nothing changes.",
        "sglang 38519, 29310",
    ),
    clause(
        "lacking_verbs_are_refused",
        "allocators",
        "A verb that an allocator lacks raises NotImplementedError, and nothing changes.",
        "sglang 7819, 36591",
        "lacks",
    ),
)
