"""A restore that is refused has changed the cache already."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import TokenPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class ChangesThenRefuses(TokenPool):
    def check_copy(self, copy: Any, indices: Any) -> None:
        if copy.tokens != len(indices):
            self.k[0][indices] = 0
        super().check_copy(copy, indices)


FAULT = Fault(
    reports=("llama.cpp#27052",),
    fault_class="stale-state",
    clause="wrong_length_is_refused",
    make=partial(make_token, cls=ChangesThenRefuses),
    kind="token",
    program="write r0 at 5..7; offload r0 as c0; refuse reload c0 at 5",
)
