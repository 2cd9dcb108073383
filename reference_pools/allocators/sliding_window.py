"""Two spaces of ids that advance in step: every token, and those inside the window."""

from __future__ import annotations

import torch
from torch import Tensor

from reference_pools.allocators.base import KVAllocator
from reference_pools.allocators.free_list import Start
from reference_pools.allocators.paged import PagedAllocator
from reference_pools.base import HostCopy
from reference_pools.sliding_window import SlidingWindowPool


class SlidingWindowAllocator(KVAllocator):
    """Full ids, each mapped to a window row until the window has slid past the token.

    Ids are those of `pool.full`; `pool.mapping` (int64 `[full.token_rows]`) holds the window
    row of each, 0 for none. The tokens of one full page have their window rows in one
    window page, at the same slots. A window page comes back with the last of its rows, and
    no mapping entry outlives its row (SGLang issues 25385, 27779).

    Owners: `retain` counts for the window row too, where there is one. The row stays until
    each owner has released it (`release_window`) or freed the token. An owner that frees a
    token which *some* owner has released gives up no window row, since the one that
    released may be this one: the row then stays for the others, at the latest until the
    last of them frees. An owner releases a token once.

    Groups: mapping entries are resolved and cleared at each call, since the same full id may
    be mapped anew before the group ends; the rows of both spaces come back at its end.
    """

    def __init__(self, pool: SlidingWindowPool) -> None:
        """Begin with an empty mapping; `ValueError` where the page sizes differ."""
        if pool.window.page_size != pool.page_size:
            raise ValueError(
                f"full pages of {pool.page_size} rows cannot advance in step with "
                f"window pages of {pool.window.page_size}"
            )
        self.pool = pool
        self.size = pool.size
        self.page_size = pool.page_size
        self.first = pool.page_size
        self.full = PagedAllocator(pool.full)
        self.window = PagedAllocator(pool.window)
        self.clear()

    def available(self) -> int:
        """The smaller of `available_full` and `available_window`: a token needs both."""
        return min(self.available_full(), self.available_window())

    def available_full(self) -> int:
        """Ids in free pages of the full space."""
        return self.full.available()

    def available_window(self) -> int:
        """Rows in free pages of the window space."""
        return self.window.available()

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        """As `KVAllocator.alloc`; each new id is mapped to a window row.

        Where the window has slid past all of the page in which `held` ends, that page is
        given a fresh window page, so this may take one page more than the full space does.
        """
        full, window = self.full.free_list, self.window.free_list
        start = full.start(count, held)
        window_start = self._window_start(start)
        if not full.has_room(count, start) or not window.has_room(count, window_start):
            return None
        ids = full.take(count, start)
        self.pool.map_window(ids, window.take(count, window_start))
        return ids

    def retain(self, ids: Tensor) -> None:
        """As `KVAllocator.retain`, for the window rows that are still there too."""
        rows = self._mapped(self.full.free_list.check_in_use("ids", ids))[1]
        self.full.retain(ids)
        self.window.retain(rows)

    def free(self, ids: Tensor) -> None:
        """As `KVAllocator.free`; the window rows that are still there go with their ids."""
        full, window = self.full.free_list, self.window.free_list
        mapped, rows = self._mapped(full.check_in_use("ids", ids))
        unreleased = window.owners[rows] == full.owners[mapped]
        self._release(mapped[unreleased], rows[unreleased])
        self.full.free(ids)

    def release_window(self, ids: Tensor) -> None:
        """The window of one owner has slid past `ids` (`[n]`): give up their window rows.

        The ids stay in use. Those that have no window row any more are skipped (SGLang
        issues 27779, 38519); others are refused as everywhere.
        """
        self._release(*self._mapped(self.full.free_list.check_in_use("ids", ids)))

    def begin_free_group(self) -> None:
        self.full.begin_free_group()
        self.window.begin_free_group()

    def end_free_group(self) -> None:
        self.full.end_free_group()
        self.window.end_free_group()

    def clear(self) -> None:
        """As `KVAllocator.clear`; no id is mapped any more."""
        self.full.clear()
        self.window.clear()
        self.pool.mapping.zero_()

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        """Offload by the pool's own verb, with every keyword that it has."""
        return self.pool.get_cpu_copy(indices, mamba_indices=mamba_indices)

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        """Reload by the pool's own verb, with every keyword that it has."""
        self.pool.load_cpu_copy(kv_cache_cpu, indices, mamba_indices=mamba_indices)

    def _window_start(self, start: Start) -> Start:
        """Where the window rows go: at the same slot, in the page that goes with the full one."""
        if start.page is None:
            return start
        begin = start.page * self.page_size
        _, rows = self._mapped(torch.arange(begin, begin + start.slot))
        return Start(start.slot, int(rows[0]) // self.page_size if len(rows) else None)

    def _mapped(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Those of `ids` that have a window row, and these rows; all on the host."""
        rows = self.pool.mapping[ids.to(self.pool.mapping.device)].cpu()
        return ids[rows > 0], rows[rows > 0]

    def _release(self, ids: Tensor, rows: Tensor) -> None:
        """One owner fewer for each of `rows`, and no mapping of an id whose row has none left."""
        self.window.free(rows)
        gone = ids[self.window.free_list.owners[rows] == 0]
        self.pool.unmap_window(gone.to(self.pool.mapping.device))
