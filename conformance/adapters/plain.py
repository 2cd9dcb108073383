"""The default adapter: SGLang's names for the verbs, called on the pool itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Plain:
    """`get_cpu_copy(ids, mamba_indices=...)` and `load_cpu_copy(copy, ids, mamba_indices=...)`.

    The keyword is always passed, as SGLang's scheduler does (sglang PR 27645). A pool
    declares its buffers by a method `buffers()`, or they are found by their sizes.
    """

    metadata: Sequence[str] = ()

    def offload(self, pool: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        return pool.get_cpu_copy(ids, mamba_indices=state_ids)

    def reload(self, pool: Any, copy: Any, ids: Tensor, state_ids: Tensor | None) -> None:
        pool.load_cpu_copy(copy, ids, mamba_indices=state_ids)

    def buffers(self, pool: Any) -> Mapping[str, Sequence[Tensor]] | None:
        declared = getattr(pool, "buffers", None)
        return declared() if callable(declared) else None


PLAIN = Plain()
