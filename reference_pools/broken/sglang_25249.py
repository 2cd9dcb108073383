"""A pool with tensors of its own inherits a pair that reads its parent's attribute."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import MLAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_mla


class InheritsPair(MLAPool):
    def __init__(self, **geometry: Any) -> None:
        super().__init__(**geometry)
        self.renamed = self.latent
        del self.latent

    def buffers(self) -> dict[str, Any]:
        return {"latent": self.renamed}


FAULT = Fault(
    reports=("sglang#25249",),
    fault_class="missing-override",
    clause="every_verb_works",
    make=partial(make_mla, cls=InheritsPair),
    kind="mla",
    program="write r0 at 5; offload r0 as c0",
)
