"""Move addresses the pages of the index keys with token ids."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import DSAPool, MLAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_dsa
from reference_pools.transfer import move_rows


class MovesPagesByTokenIds(DSAPool):
    def move_kv_cache(self, tgt_loc: Any, src_loc: Any) -> None:
        MLAPool.move_kv_cache(self, tgt_loc, src_loc)
        pages = len(self.index_k[0])  # a device does not check that ids are below it
        exist = (tgt_loc < pages) & (src_loc < pages)
        move_rows(self.index_k, tgt_loc[exist], src_loc[exist])


FAULT = Fault(
    reports=("sglang#31060", "sglang#31215", "sglang#31218", "sglang#30528"),
    fault_class="page-granularity",
    clause="move_carries_companions",
    make=partial(make_dsa, cls=MovesPagesByTokenIds),
    kind="dsa",
    program="write r0 at 5..7; move r0[2] to [0]",
)
