"""A backup or a load that is under way: what it touches, and when it is complete."""

from __future__ import annotations

from torch import Tensor

from reference_pools.host.ids import HostIds, UnitIds
from reference_pools.host.parts import MAIN
from reference_pools.host.streams import Event, Streams
from reference_pools.host.waits import Waits


class Transfer:
    """Copies of the rows of one request, with an event per part and layer.

    Each part (`main`, `scales`, `index_keys`, `state`) runs on a stream of its own and is
    complete by itself. The transfer is done when all of them are: index keys that are still
    in flight make latents useless (sglang 27550, 38031).
    """

    kind = "transfer"

    def __init__(
        self,
        host: HostIds,
        host_rows: UnitIds,
        device_rows: UnitIds,
        events: dict[str, list[Event]],
        streams: Streams,
        waits: Waits,
    ) -> None:
        self.host = host
        self.host_rows = host_rows
        self.device_rows = device_rows
        self.events = events
        self._streams = streams
        self._waits = waits
        self.seen_done = False

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.events)

    @property
    def layers(self) -> int:
        """Layers of the part that has the most; the parts of a hybrid pool differ."""
        return max(len(events) for events in self.events.values())

    @property
    def done(self) -> bool:
        """Whether every part is complete. Never waits; once true it stays true."""
        self.seen_done = self.seen_done or all(self.part_done(part) for part in self.events)
        return self.seen_done

    def part_done(self, part: str) -> bool:
        """Whether every buffer and layer of `part` is complete; `KeyError` for another name."""
        return self._waits.reached(f"done_counts_{_role(part)}", self.events[part][-1:])

    def wait(self) -> None:
        """Wait on the host until the transfer is done."""
        for part, events in self.events.items():
            self._waits.on_host(f"wait_covers_{_role(part)}", events[-1:])
        self.seen_done = True

    def last_events(self) -> list[Event]:
        """One per part, reached when the transfer is done."""
        return [event for events in self.events.values() for event in events[-1:]]


class Backup(Transfer):
    """Device to host. The device rows must not be freed, nor written other than by a load of
    the same tier, before `wait()` has returned or `done` was true."""

    kind = "backup"

    @property
    def host_ids(self) -> Tensor:
        """The host token ids in whole pages, int64 on the CPU: `host.tokens`."""
        return self.host.tokens

    @property
    def tokens(self) -> int:
        """How many tokens were backed up; the last page may be partial."""
        return len(self.device_rows.token)


class Load(Transfer):
    """Host to device, layer by layer."""

    kind = "load"

    def wait_layer(self, layer: int) -> None:
        """Make the current stream wait until `layer` is complete in every buffer.

        Layers are counted from 0 in each part, as `buffers()` lists them; a part that has
        fewer is not waited for. `IndexError` names a layer that no part has.
        """
        if not 0 <= layer < self.layers:
            raise IndexError(f"layer {layer} of a load of {self.layers} layers")
        current = self._streams.current()
        for part, events in self.events.items():
            self._waits.for_events(
                f"layer_waits_for_{_role(part)}", current, events[layer : layer + 1]
            )


def _role(part: str) -> str:
    return "main" if part == MAIN else "extras"
