"""Tokens that go on in a page which is begun take a fresh page besides, and nobody gets it."""

from __future__ import annotations

from torch import Tensor

from reference_pools.allocators import PagedAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class TakesOnePageMore(PagedAllocator):
    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        ids = super().alloc(count, held)
        if ids is not None and count and int(ids[0]) % self.page_size:
            del self.free_list.free_pages[-1:]
        return ids


FAULT = Fault(
    reports=("sglang#7130", "sglang-jax#70"),
    fault_class="allocator-leak",
    clause="ids_are_conserved",
    make=make_token,
    kind="token",
    front=TakesOnePageMore,
    allocator="token",
    program="extend r0 by 1; extend r0 by 1",
)
