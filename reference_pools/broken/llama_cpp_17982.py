"""Restore demands that the rows which it is given lie side by side."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import TokenPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class DemandsContiguous(TokenPool):
    def check_copy(self, copy: Any, indices: Any) -> None:
        super().check_copy(copy, indices)
        if len(indices) and int(indices[-1] - indices[0]) != len(indices) - 1:
            raise RuntimeError(f"no contiguous range of {len(indices)} rows")


FAULT = Fault(
    reports=("llama.cpp#17982",),
    fault_class="relocation",
    clause="any_rows_in_any_order",
    make=partial(make_token, cls=DemandsContiguous),
    kind="token",
    program="write r0 at 5..7; offload r0 as c0; overwrite; reload c0 at 5,7,9",
)
