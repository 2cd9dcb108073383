"""SGLang's pools, called as its scheduler calls them: through an allocator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, slots=True)
class SGLang:
    """The verbs of the allocator that `front(pool)` returns, which forwards them to the pool.

    Every optional keyword that the allocator has is passed, as `Req.offload_kv_cache` does
    in the same release (`mamba_indices` from 0.5.12 on, `req_pool_index` later). Buffers
    are found by their sizes; tables of addresses and strides are metadata.
    """

    front: Callable[[Any], Any]
    metadata: Sequence[str] = ("*data_ptrs*", "*data_strides*", "*layout_*")

    def offload(self, pool: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        allocator = self.front(pool)
        verb = allocator.get_cpu_copy
        return verb(ids, **_keywords(verb, state_ids))

    def reload(self, pool: Any, copy: Any, ids: Tensor, state_ids: Tensor | None) -> None:
        allocator = self.front(pool)
        verb = allocator.load_cpu_copy
        verb(copy, ids, **_keywords(verb, state_ids))

    def buffers(self, pool: Any) -> Mapping[str, Sequence[Tensor]] | None:  # noqa: ARG002
        return None


def _keywords(verb: Callable[..., Any], state_ids: Tensor | None) -> dict[str, Any]:
    optional = {
        name: parameter.default
        for name, parameter in inspect.signature(verb).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    return optional | {"mamba_indices": state_ids}
