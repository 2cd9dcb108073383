"""Moved rows leave their scales behind, so they are read with those of other tokens."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from reference_pools import QuantizedPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_quantized
from reference_pools.transfer import move_rows


class MovesPayloadAlone(QuantizedPool):
    def move_kv_cache(self, tgt_loc: Any, src_loc: Any) -> None:
        self.check_move(tgt_loc, src_loc)
        move_rows(self.k, tgt_loc, src_loc)
        move_rows(self.v, tgt_loc, src_loc)


FAULT = Fault(
    reports=("sglang#15108",),
    fault_class="companion-state-lost",
    clause="move_carries_companions",
    make=partial(make_quantized, cls=MovesPayloadAlone, bits=4),
    kind="token",
    sizes={"head_dims": [32], "v_head_dims": [48], "dtypes": [torch.bfloat16, torch.float16]},
    program="write r0 at 5..7; move r0[2] to [0]",
)
