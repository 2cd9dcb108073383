"""The pair is overridden with a raise, though retraction reaches it by default."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import DSAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_dsa


class OnlyRaises(DSAPool):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        raise NotImplementedError("offload is not supported by this pool")

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        raise NotImplementedError("offload is not supported by this pool")


FAULT = Fault(
    reports=("sglang#36591",),
    fault_class="missing-override",
    clause="every_verb_works",
    make=partial(make_dsa, cls=OnlyRaises),
    kind="dsa",
    program="write r0 at 5; offload r0 as c0",
)
