"""An engine's verbs in terms of ours.

An adapter raises `NotImplementedError` for a verb that its engine does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

Locate = Callable[[Tensor], Tensor]


class Adapter(Protocol):
    """How the suite calls a pool; `conformance.adapters.plain` is the default.

    `metadata` are patterns (`fnmatch`) of attribute paths whose tensors hold no request data.
    """

    @property
    def metadata(self) -> Sequence[str]: ...

    def offload(self, pool: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        """Copy the token rows `ids` `[n]` and state rows to the host; returns the copy."""

    def wait(self, pool: Any, copy: Any) -> None:
        """Wait until the host can read a copy that `offload` returned, by the pool's own means;
        nothing where `offload` has waited itself."""

    def reload(self, pool: Any, copy: Any, ids: Tensor, state_ids: Tensor | None) -> None:
        """Load a copy that `offload` returned into these rows."""

    def move(self, pool: Any, targets: Tensor, sources: Tensor) -> None:
        """Copy the tokens at `sources` `[n]` to `targets` `[n]`."""

    def copy_state(self, pool: Any, sources: Tensor, targets: Tensor) -> None:
        """Copy the state rows `sources` `[n]` to `targets` `[n]`."""

    def zero_state(self, pool: Any, ids: Tensor) -> None:
        """Zero the state rows `ids` `[n]`."""

    def buffers(self, pool: Any) -> Mapping[str, Sequence[Tensor]] | None:
        """The pool's buffers by name, one tensor per layer, rows first; None to have them
        found by their sizes."""

    def locate(self, pool: Any, name: str) -> Locate | None:
        """From token ids `[n]` to rows `[n]` of buffer `name`, -1 where it holds nothing for
        the token; None where the ids are the rows."""


class AllocatorAdapter(Protocol):
    """How the suite calls an allocator; `conformance.adapters.plain` has the default."""

    def available(self, allocator: Any) -> Mapping[str, int]:
        """How many ids can be handed out, by id space: `token`, and `window` if there is one."""

    def alloc(self, allocator: Any, count: int, held: Tensor) -> Tensor | None:
        """`count` more ids for a request that holds `held` `[n]`; None where there is no room."""

    def free(self, allocator: Any, ids: Tensor) -> None:
        """One owner less for each of `ids` `[n]`."""

    def share(self, allocator: Any, ids: Tensor) -> None:
        """One owner more for each of `ids` `[n]`."""

    def slide(self, allocator: Any, ids: Tensor) -> None:
        """The window has left `ids` `[n]` behind; they stay owned."""

    def mapping(self, allocator: Any) -> Tensor | None:
        """From full ids to window rows, `[n_rows]`, 0 for none; None without a window."""

    def begin_group(self, allocator: Any) -> None: ...

    def end_group(self, allocator: Any) -> None: ...

    def clear(self, allocator: Any) -> None: ...

    def compact(self, allocator: Any) -> None: ...

    def translate(self, allocator: Any, ids: Tensor) -> Tensor:
        """The physical rows of virtual `ids` `[n]`."""

    def offload(self, allocator: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        """Offload through the allocator, with every optional keyword that it has."""

    def reload(self, allocator: Any, copy: Any, ids: Tensor, state_ids: Tensor | None) -> None:
        """Reload through the allocator, likewise."""


class HostTierAdapter(Protocol):
    """How the suite calls a host tier; `conformance.adapters.plain` has the default.

    What `backup` and `load` return is theirs; the other verbs are given it back.
    """

    def backup(self, tier: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        """Begin to copy the token rows `ids` `[n]`, whole pages, and the state rows
        `state_ids` `[1]` to fresh host rows; None where there is no room."""

    def load(self, tier: Any, backup: Any, ids: Tensor, state_ids: Tensor | None) -> Any:
        """Begin to copy what was backed up into these rows."""

    def wait(self, tier: Any, transfer: Any) -> None:
        """Wait on the host until a backup, or a load, is complete."""

    def is_done(self, tier: Any, transfer: Any) -> bool:
        """Whether a backup, or a load, is complete; never waits."""

    def wait_layer(self, tier: Any, load: Any, layer: int) -> None:
        """Make the current stream wait until a layer of a load, counted from 0, is complete
        in every buffer that has it."""

    def free(self, tier: Any, backup: Any) -> None:
        """Give the host rows of a backup back."""

    def available(self, tier: Any) -> Mapping[str, int]:
        """How many host rows can be taken: of `token`, and of `state` if there are any."""

    def row_bytes(self, tier: Any) -> Mapping[str, int]:
        """Bytes of one host row of one layer, by buffer, named as on the device."""
