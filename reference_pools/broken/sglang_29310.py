"""Host rows that are free already are freed again, and nobody notices."""

from __future__ import annotations

from torch import Tensor

from reference_pools import TokenPool
from reference_pools.allocators import HostAllocator
from reference_pools.base import check_ids
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class FreesWhatIsFree(HostAllocator):
    def free(self, ids: Tensor) -> None:
        check_ids("ids", ids, self.first, self.size)
        in_use = self.free_list.owners[ids] > 0
        super().free(ids[in_use])
        again = ids[~in_use] // self.page_size
        self.free_list.free_pages += set(again.tolist())


def front(pool: TokenPool) -> FreesWhatIsFree:
    return FreesWhatIsFree(size=pool.size, page_size=pool.page_size)


FAULT = Fault(
    reports=("sglang#29310",),
    fault_class="double-free",
    clause="double_free_is_refused",
    make=make_token,
    kind="token",
    front=front,
    allocator="host",
    program="extend r0 by 5; free r0; refuse free r0",
)
