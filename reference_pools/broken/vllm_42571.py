"""A block that is named twice in one free is put on the free list twice."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor

from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class FreesPerOccurrence(PagedAllocator):
    def free(self, ids: Tensor) -> None:
        occurrences = Counter(ids.tolist())
        super().free(torch.tensor(list(occurrences), dtype=torch.int64))
        again = {i // self.page_size for i, count in occurrences.items() if count > 1}
        self.free_list.free_pages += again


FAULT = Fault(
    reports=("vllm#42571", "vllm#42903", "unified-cache-management#1053"),
    fault_class="double-free",
    clause="duplicate_free_is_refused",
    make=make_token,
    kind="token",
    front=FreesPerOccurrence,
    allocator="token",
    program="extend r0 by 1; refuse free r0,r0",
)
