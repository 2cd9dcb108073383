"""Host tiers that break a clause, each one alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from torch import Tensor

from conformance import HostTier as Declared
from reference_pools import KVPool
from reference_pools.declarations import kv_pools
from reference_pools.host import Backup, HostIds, HostPool, HostTier, Layout, Load, Waits
from reference_pools.host.layout import HostBuffer

POOLS = {entry.name: entry for entry in kv_pools() if not isinstance(entry, Declared)}


class RefusesOrder(HostTier):
    """Takes pages for sorted."""

    def load(self, source: Any, device_ids: Tensor, state_id: Tensor | None = None) -> Load:
        if bool((device_ids.diff() < 0).any()):
            raise IndexError("pages must ascend")
        return super().load(source, device_ids, state_id)


class WrongDirection(HostTier):
    """Load launches the copies of a backup."""

    def __init__(self, *parties: Any, **options: Any) -> None:
        super().__init__(*parties, **options)
        self.loads.way = "backup"


class ForgetsPart(HostTier):
    """Loads without the copies of one part."""

    part = ""

    def __init__(self, *parties: Any, **options: Any) -> None:
        super().__init__(*parties, **options)
        for lane in self.loads.lanes:
            lane._pairs = [] if lane.part == self.part else lane._pairs


class ForgetsIndexKeys(ForgetsPart):
    part = "index_keys"


class ForgetsState(ForgetsPart):
    part = "state"


class ZeroesPadding(HostTier):
    """Cleans the reserved page after each load."""

    def load(self, source: Any, device_ids: Tensor, state_id: Tensor | None = None) -> Load:
        load = super().load(source, device_ids, state_id)
        for layers in self.device_pool.buffers().values():
            layers[0][0].zero_()
        return load


class NarrowBuffer(HostBuffer):
    """Rows without their last element."""

    def scatter(self, layer: int, ids: Sequence[int], rows: Tensor) -> None:
        rows = rows.clone()
        rows[..., -1].zero_()
        super().scatter(layer, ids, rows)


class NarrowRows(HostTier):
    """Host rows are sized by the nominal width."""

    def __init__(self, *parties: Any, **options: Any) -> None:
        super().__init__(*parties, **options)
        for buffer in self.host_pool.buffers.values():
            buffer.__class__ = NarrowBuffer

    def row_bytes(self) -> dict[str, int]:
        buffers = self.host_pool.buffers.items()
        return {name: buffer.row.bytes - buffer.row.dtype.itemsize for name, buffer in buffers}


class KeepsAPage(HostTier):
    """Gives back all pages but the last, where there are several."""

    def free(self, source: Any) -> None:
        page = self.host_pool.page_size
        kept = source.host.tokens[:-page]
        super().free(HostIds(kept, source.host.states) if len(kept) else source)


class ClearsWhenFull(HostTier):
    """Where the host is full, everything on it is forgotten."""

    def backup(self, device_ids: Tensor, state_id: Tensor | None = None) -> Backup | None:
        done = super().backup(device_ids, state_id)
        if done is None:
            self.rows.tokens.clear()
            done = super().backup(device_ids, state_id)
        return done


class BackupEndsEarly(HostTier):
    """The wait for a backup does not cover its extra parts."""

    def backup(self, device_ids: Tensor, state_id: Tensor | None = None) -> Backup | None:
        backup = super().backup(device_ids, state_id)
        if backup is not None:
            backup._waits = MAIN_ALONE
        return backup


class LoadEndsEarly(HostTier):
    """A load is called done when its main part is."""

    def load(self, source: Any, device_ids: Tensor, state_id: Tensor | None = None) -> Load:
        load = super().load(source, device_ids, state_id)
        load._waits = MAIN_ALONE
        return load


class FreesTwice(HostTier):
    """Rows that are free already are left as they are."""

    def free(self, source: Any) -> None:
        with suppress(ValueError):
            super().free(source)


MAIN_ALONE = Waits(["wait_covers_extras", "done_counts_extras"])


def make(pool: KVPool, cls: type[HostTier] = HostTier, layout: Layout = "layer_first") -> HostTier:
    memory = HostPool(pool, pages=pool.size // pool.page_size - 1, layout=layout)
    return cls(pool, memory, memory.allocator())


def without(*points: str) -> Callable[[KVPool], HostTier]:
    """Makes tiers that leave out these waits."""

    def make(pool: KVPool) -> HostTier:
        memory = HostPool(pool, pages=pool.size // pool.page_size - 1)
        return HostTier(pool, memory, memory.allocator(), waits=Waits(points))

    return make


def tier(made_by: Any, pool: str = "token", **declared: Any) -> Declared:
    factory = partial(make, cls=made_by) if isinstance(made_by, type) else made_by
    return Declared("t", factory, POOLS[pool], level="strict", **declared)


HOST_TIERS = {
    "host_tier_verbs_work": tier(RefusesOrder),
    "host_tier_restores_every_row": tier(WrongDirection),
    "host_tier_carries_companions": tier(ForgetsIndexKeys, "dsa"),
    "host_tier_carries_state": tier(ForgetsState, "hybrid"),
    "host_tier_leaves_other_rows_alone": tier(ZeroesPadding),
    "host_rows_are_as_wide": tier(NarrowRows, "mla"),
    "host_rows_are_conserved": tier(KeepsAPage),
    "full_host_changes_nothing": tier(ClearsWhenFull),
    "backup_is_complete_when_awaited": tier(BackupEndsEarly, "dsa"),
    "load_is_complete_when_awaited": tier(LoadEndsEarly, "dsa"),
    "layer_is_complete_when_awaited": tier(without("layer_waits_for_extras"), "dsa"),
    "host_tier_timing_changes_nothing": tier(without("backup_waits_for_compute")),
    "rows_in_flight_are_kept": tier(without("free_checks_copies")),
    "copies_of_one_row_run_in_order": tier(without("load_waits_for_backup")),
    "copies_outlive_their_tier": tier(without("streams_keep_stages")),
    "double_drop_is_refused": tier(FreesTwice),
    "lacking_host_verbs_are_refused": tier(HostTier, lacks=["polling"]),
}
