"""The host tier: rows of a request go to the host and come back while others compute."""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor

from reference_pools.allocators import HostAllocator
from reference_pools.base import KVPool
from reference_pools.host.direction import Direction
from reference_pools.host.ids import HostIds, device_ids_of
from reference_pools.host.pool import HostPool
from reference_pools.host.rows import HostRows, check_idle, check_load
from reference_pools.host.streams import Streams
from reference_pools.host.transfers import Backup, Load, Transfer
from reference_pools.host.waits import Waits

T = TypeVar("T", bound=Transfer)


class HostTier:
    """Copies between a device pool and its host pool, each part on a stream of its own.

    A call queues its copies and returns; only `wait` waits on the host. Token ids on the
    device are int32 or int64 `[n]`, whole pages in order of which the last may be partial;
    a state id is 0-dim or `[n]`. Ids are refused before anything changes, as by `check_ids`
    and `check_pages`, by an error that names the value. Ids on a device are read on the host
    for that, which waits for the stream that holds them; ids on the CPU cost no wait.

    Copies of different requests may overlap. Those of one page or state run in the order of
    the calls, whatever their direction.
    """

    def __init__(
        self,
        device_pool: KVPool,
        host_pool: HostPool,
        allocator: HostAllocator,
        *,
        waits: Waits | None = None,
    ) -> None:
        """`allocator` hands out the host token ids; whoever shares it frees through the tier.

        `ValueError` for a host pool or an allocator that does not fit.
        """
        host_pool.check_fits(device_pool)
        self.device_pool = device_pool
        self.host_pool = host_pool
        self.rows = HostRows(host_pool, allocator)
        self.waits = Waits() if waits is None else waits
        self.streams = Streams(device_pool.device)
        parties = (device_pool, host_pool, self.streams, self.waits)
        self.backups = Direction("backup", *parties)
        self.loads = Direction("load", *parties)
        self._transfers: list[Transfer] = []

    def backup(self, device_ids: Tensor, state_id: Tensor | None = None) -> Backup | None:
        """Copy the rows to fresh host rows; None, and nothing changed, where the host is full.

        Reads what the current stream has written by then. The device rows must not be freed,
        nor written but by a load of this tier, before `wait()` of the backup has returned.
        """
        device = device_ids_of(self.device_pool, device_ids, state_id)
        ids = self.backups.upload(device)
        taken = self.rows.take(len(device.token), None if state_id is None else len(device.state))
        if taken is None:
            return None
        host = self.rows.check_in_use(taken)
        loads = [t for t in self._transfers if t.kind == "load" and t.device_rows.shared(device)]
        events = self.backups.run(ids, host.first(len(device.token)), loads)
        return self._started(Backup(taken, host, device, events, self.streams, self.waits))

    def load(
        self,
        source: Backup | HostIds | Tensor,
        device_ids: Tensor,
        state_id: Tensor | None = None,
    ) -> Load:
        """Copy host rows to device rows: host token i goes to `device_ids[i]`.

        `source` is a backup, its `host`, or host token ids in whole pages. What the current
        stream has queued by then may still use the device rows. They must not be used again
        before `wait_layer` or `wait` of the load. Rows behind a partial last page are left
        alone, but its index keys are written as a whole.

        `ValueError` for host rows that are not in use, not in whole pages, or not as many as
        the device rows.
        """
        given = _host_ids(source)
        device = device_ids_of(self.device_pool, device_ids, state_id)
        host = self.rows.check_in_use(given)
        check_load(host, device, source.tokens if isinstance(source, Backup) else None)
        ids = self.loads.upload(device)
        backups = [
            t
            for t in self._transfers
            if t.kind == "backup" and (t.host_rows.shared(host) or t.device_rows.shared(device))
        ]
        events = self.loads.run(ids, host.first(len(device.token)), backups)
        return self._started(Load(given, host, device, events, self.streams, self.waits))

    def free(self, source: Backup | HostIds | Tensor) -> None:
        """Give host rows back: tokens in whole pages, and states.

        `RuntimeError` names a row that a backup or a load in flight still uses. `ValueError`
        for rows that are not in use (a second free) or not in whole pages. Nothing is
        changed then.
        """
        given = _host_ids(source)
        host = self.rows.check_in_use(given)
        if self.waits.holds("free_checks_copies"):
            check_idle(host, self._transfers)
        self.rows.give_back(given)
        self._forget_done()

    def available(self) -> dict[str, int]:
        """How many host rows are free: of `token`, and of `state` where there are states."""
        states = self.rows.states
        free = {} if states is None else {"state": states.available()}
        return {"token": self.rows.tokens.available(), **free}

    def row_bytes(self) -> dict[str, int]:
        """Bytes of one host row of one layer, by buffer."""
        return {name: buffer.row.bytes for name, buffer in self.host_pool.buffers.items()}

    def _started(self, transfer: T) -> T:
        self._forget_done()
        self._transfers.append(transfer)
        return transfer

    def _forget_done(self) -> None:
        """Those that are known to be done: asking an event may let its stream go on."""
        self._transfers = [t for t in self._transfers if not t.seen_done]


def _host_ids(source: Backup | HostIds | Tensor) -> HostIds:
    if isinstance(source, Backup):
        return source.host
    return source if isinstance(source, HostIds) else HostIds(source)
