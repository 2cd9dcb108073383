"""The verify step calls move unconditionally, and this pool has none."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import MLAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_mla


class NeverMoves(MLAPool):
    def move_kv_cache(self, tgt_loc: Any, src_loc: Any) -> None:
        raise AttributeError("move_kv_cache")


FAULT = Fault(
    reports=("sglang#26982", "sglang#14817"),
    fault_class="missing-override",
    clause="move_accepts_every_token",
    make=partial(make_mla, cls=NeverMoves),
    kind="mla",
    program="write r0 at 5..7; move r0[2] to [0]",
)
