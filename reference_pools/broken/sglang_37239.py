"""A buffer whose rows are pages is addressed with token ids."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import DSAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_dsa


class TokenIdsForPages(DSAPool):
    def pages_of(self, indices: Any) -> Any:
        _, start_slot = super().pages_of(indices)
        pages = self.token_rows // self.page_size
        return indices[:: self.page_size].clamp(max=pages - 1), start_slot


FAULT = Fault(
    reports=("sglang#37239",),
    fault_class="index-space-mismatch",
    clause="companions_travel",
    make=partial(make_dsa, cls=TokenIdsForPages),
    kind="dsa",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
