"""A broken allocator for each clause that no public fault in the catalogue breaks."""

from __future__ import annotations

from torch import Tensor

from conformance import Allocator, Pool
from reference_pools.allocators import PagedAllocator
from reference_pools.declarations import make_token


class WantsNeighbours(PagedAllocator):
    """Gives nothing where the free pages do not lie side by side."""

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        ids = super().alloc(count, held)
        if ids is not None and bool((ids.diff() != 1).any()):
            self.free(ids)
            return None
        return ids


class KeepsTheLastFree(PagedAllocator):
    """A free group remembers what was freed last, and forgets what was freed before."""

    def free(self, ids: Tensor) -> None:
        if self.free_list.pending:
            self.free_list.pending = []
        super().free(ids)


class FreesWhatItKnows(PagedAllocator):
    """Passes over ids that it has not."""

    def free(self, ids: Tensor) -> None:
        super().free(ids[(ids >= self.first) & (ids < self.first + self.size)])


TOKEN = Pool("pool", make_token, kind="token")

ALLOCATORS: dict[str, Allocator] = {
    "capacity_can_be_used": Allocator("wants-neighbours", WantsNeighbours, TOKEN, level="strict"),
    "free_groups_free_at_the_end": Allocator(
        "keeps-the-last-free", KeepsTheLastFree, TOKEN, level="strict"
    ),
    "foreign_ids_are_not_freed": Allocator(
        "frees-what-it-knows", FreesWhatItKnows, TOKEN, level="strict"
    ),
    "lacking_verbs_are_refused": Allocator(
        "shares-anyway", PagedAllocator, TOKEN, lacks=["sharing"], level="strict"
    ),
}
