"""The root class of the allocators: who hands out the ids of rows, and to whom."""

from __future__ import annotations

import abc

from torch import Tensor


class KVAllocator(abc.ABC):
    """Hands out the ids `first .. first + size - 1` in pages of `page_size`.

    An id may have several owners: a prefix that two requests share. A page (one id where
    `page_size` is 1) can be handed out again when none of its ids has an owner any more.

    Ids are int32 or int64 tensors `[n]` on any device, contiguous or not. The ids that a
    method is given are refused before anything changes, by an error that names the id:
    `TypeError` for another type, `ValueError` for another shape, an id named twice in one
    call or an id that is not in use (freed before, or never handed out), `IndexError` for
    a value below `first` or past the last id. No ids at all are legal, and change nothing.
    """

    size: int
    page_size: int
    first: int

    @abc.abstractmethod
    def available(self) -> int:
        """How many ids a new request can be given now: whole free pages, counted in ids."""

    @abc.abstractmethod
    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        """New ids, int64 `[count]` on the pool's device, for a request that has `held`.

        `held` is that request's ids in order, None or empty for a new request. The new ids
        first fill the page in which `held` ends, then fresh pages slot after slot. They
        have one owner. The tensor is the caller's own.

        None when there is no room; then nothing has changed, no page is touched and no
        counter moves (SGLang issue 34399). Raises `ValueError` for a negative count, and for
        a `held` whose last page cannot be continued: one of its ids has two owners (share
        whole pages), or a later id of it is in use.
        """

    @abc.abstractmethod
    def retain(self, ids: Tensor) -> None:
        """One more owner for each of `ids`."""

    @abc.abstractmethod
    def free(self, ids: Tensor) -> None:
        """One owner fewer for each of `ids`.

        A second free of the same ownership is refused (SGLang pull request 29310, vLLM
        issue 42571).
        """

    @abc.abstractmethod
    def begin_free_group(self) -> None:
        """Keep what is freed from here on until `end_free_group`.

        Ownership ends at each `free`; the pages come back together, at the end of the group.
        Raises `RuntimeError` where a group is open: groups do not nest.
        """

    @abc.abstractmethod
    def end_free_group(self) -> None:
        """Hand out again what the group freed; `RuntimeError` where no group is open."""

    @abc.abstractmethod
    def clear(self) -> None:
        """Be as new: nothing is in use, no group is open. Whoever holds ids has lost them."""
