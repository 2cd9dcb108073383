"""A stream for each part, and the device memory through which its rows pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from reference_pools.host.layout import HostBuffer, Row
from reference_pools.host.parts import Part, Unit
from reference_pools.host.streams import Event, Stream, Streams, record
from reference_pools.host.waits import Waits

STAGES = 3


class Stages:
    """Pieces of device memory that the streams of one direction take in turn.

    However many requests are in flight, their rows pass through these: `STAGES` pieces of
    `size` bytes. A stage that another stream used last is waited for, on the device.
    """

    def __init__(self, size: int, streams: Streams, users: Sequence[Stream], waits: Waits) -> None:
        self._waits = waits
        self._memory = [
            torch.empty(size, dtype=torch.uint8, device=streams.device) for _ in range(STAGES)
        ]
        # Whoever had this memory before may still use it, in the stream that allocates.
        self._last: list[Event] = [record(streams.current()) for _ in range(STAGES)]
        self._turn = 0
        for memory in self._memory:
            for stream in users:
                waits.keep("streams_keep_stages", memory, stream)

    @contextmanager
    def stage(self, row: Row, count: int, stream: Stream) -> Iterator[Tensor]:
        """Memory for `count` rows, `[count, ...]`, for what the block queues in `stream`."""
        turn, self._turn = self._turn, (self._turn + 1) % STAGES
        self._waits.for_events("stage_waits_for_its_last_copy", stream, [self._last[turn]])
        try:
            memory = self._memory[turn][: count * row.bytes]
            yield memory.view(row.dtype).view(count, *row.shape)
        finally:
            self._last[turn] = record(stream)


class Lane:
    """The copies of one part in one direction, in the order in which they are queued."""

    def __init__(self, part: Part, host: dict[str, HostBuffer], chunk: int, stream: Stream) -> None:
        """`chunk` is the most rows that one stage takes."""
        self.part = part.name
        self.unit: Unit = part.unit
        self.layers = part.layers
        self.stream = stream
        self._chunk = chunk
        self._pairs = [(layers, host[name]) for name, layers in part.buffers.items()]

    @property
    def stage_bytes(self) -> int:
        return self._chunk * max(host.row.bytes for _, host in self._pairs)

    def backup(self, layer: int, device: Tensor, host: Sequence[int], stages: Stages) -> None:
        """Rows `device` of a layer, `[n]` on the device, to rows `host`; in flight on return."""
        for layers, buffer, some in self._chunks(layer, len(host)):
            with stages.stage(buffer.row, some.stop - some.start, self.stream) as stage:
                torch.index_select(layers[layer], 0, device[some], out=stage)
                buffer.scatter(layer, host[some], stage)

    def load(self, layer: int, device: Tensor, host: Sequence[int], stages: Stages) -> None:
        """Rows `host` of a layer to rows `device`; as `backup`."""
        for layers, buffer, some in self._chunks(layer, len(host)):
            with stages.stage(buffer.row, some.stop - some.start, self.stream) as stage:
                buffer.gather(layer, host[some], stage)
                layers[layer][device[some]] = stage

    def _chunks(self, layer: int, n: int) -> Iterator[tuple[list[Tensor], HostBuffer, slice]]:
        for layers, host in self._pairs:
            for begin in range(0, n, self._chunk) if layer < len(layers) else ():
                yield layers, host, slice(begin, min(begin + self._chunk, n))
