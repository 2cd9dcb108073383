"""All copies in one direction: a lane for each part, and the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor

from reference_pools.base import KVPool
from reference_pools.host.ids import UnitIds
from reference_pools.host.lanes import Lane, Stages
from reference_pools.host.parts import Unit, parts_of
from reference_pools.host.pool import HostPool
from reference_pools.host.streams import Event, Streams, record
from reference_pools.host.transfers import Transfer
from reference_pools.host.waits import Waits

Way = Literal["backup", "load"]


class Direction:
    """Backups, or loads, between one device pool and one host pool."""

    def __init__(
        self, way: Way, pool: KVPool, host_pool: HostPool, streams: Streams, waits: Waits
    ) -> None:
        self.way: Way = way
        self._streams = streams
        self._waits = waits
        self._ids_stream = streams.new()
        self.lanes = [
            Lane(part, host_pool.buffers, chunk_of(pool, host_pool, part.unit), streams.new())
            for part in parts_of(pool)
        ]
        self._stages = Stages(
            max(lane.stage_bytes for lane in self.lanes),
            streams,
            [lane.stream for lane in self.lanes],
            waits,
        )

    def upload(self, device: UnitIds) -> dict[Unit, Tensor]:
        """The device ids of each unit, int64 `[n]` on the device, in flight on return."""
        with self._streams.within(self._ids_stream):
            return {
                unit: torch.tensor(device.unit(unit), dtype=torch.int64).to(
                    self._streams.device, non_blocking=True
                )
                for unit in dict.fromkeys(lane.unit for lane in self.lanes)
            }

    def run(
        self, ids: dict[Unit, Tensor], host: UnitIds, before: Iterable[Transfer]
    ) -> dict[str, list[Event]]:
        """Queue the copies after what the current stream holds and after the transfers `before`.

        `ids` are what `upload` returned. The result has an event for each part and layer.
        """
        self._order(ids, before)
        events: dict[str, list[Event]] = {lane.part: [] for lane in self.lanes}
        for layer in range(max(lane.layers for lane in self.lanes)):
            for lane in self.lanes:
                if layer < lane.layers:
                    with self._streams.within(lane.stream):
                        copy = lane.backup if self.way == "backup" else lane.load
                        copy(layer, ids[lane.unit], host.unit(lane.unit), self._stages)
                    events[lane.part].append(record(lane.stream))
        return events

    def _order(self, ids: dict[Unit, Tensor], before: Iterable[Transfer]) -> None:
        other = "load" if self.way == "backup" else "backup"
        earlier = [event for transfer in before for event in transfer.last_events()]
        uploaded = record(self._ids_stream)
        computed = record(self._streams.current())
        for lane in self.lanes:
            wait = self._waits.for_events
            wait(f"{self.way}_waits_for_compute", lane.stream, [computed])
            wait(f"{self.way}_waits_for_{other}", lane.stream, earlier)
            wait("copies_wait_for_ids", lane.stream, [uploaded])
            self._waits.keep("copies_keep_ids", ids[lane.unit], lane.stream)


def chunk_of(pool: KVPool, host_pool: HostPool, unit: Unit) -> int:
    """Rows of a `unit` that one stage takes: the whole pages of the pool's chunk, or a state."""
    pages = max(1, min(pool.chunk_tokens, pool.size, host_pool.size) // pool.page_size)
    return {"token": pages * pool.page_size, "page": pages, "state": 1}[unit]
