"""An engine's verbs in terms of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor


class Adapter(Protocol):
    """How the suite calls a pool; `conformance.adapters.plain` is the default.

    `metadata` are patterns (`fnmatch`) of attribute paths whose tensors hold no request data.
    """

    @property
    def metadata(self) -> Sequence[str]: ...

    def offload(self, pool: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        """Copy the token rows `ids` `[n]` and state rows to the host; returns the copy."""

    def reload(self, pool: Any, copy: Any, ids: Tensor, state_ids: Tensor | None) -> None:
        """Load a copy that `offload` returned into these rows."""

    def buffers(self, pool: Any) -> Mapping[str, Sequence[Tensor]] | None:
        """The pool's buffers by name, one tensor per layer, rows first; None to have them
        found by their sizes."""
