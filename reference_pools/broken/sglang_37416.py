"""The allocator of virtual ids inherits the identity as its translation to physical rows."""

from __future__ import annotations

from torch import Tensor

from conformance.adapters.plain import Plain
from reference_pools.allocators import VirtualAllocator
from reference_pools.broken import Fault
from reference_pools.declarations import make_virtual


class TranslatesToItself(VirtualAllocator):
    def translate(self, ids: Tensor) -> Tensor:
        return ids


FAULT = Fault(
    reports=("sglang#37416",),
    fault_class="index-space-mismatch",
    clause="translation_follows_compaction",
    make=make_virtual,
    kind="token",
    adapter=Plain(metadata=["table"]),
    front=TranslatesToItself,
    allocator="virtual",
    program="compact",
)
