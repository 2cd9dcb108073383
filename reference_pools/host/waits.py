"""Every place where the host tier synchronises, by name."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from reference_pools.host.streams import (
    Event,
    Stream,
    is_reached,
    keep,
    make_wait,
    wait_on_host,
)

POINTS = {
    "backup_waits_for_compute": "the compute stream may still write the rows that are read",
    "backup_waits_for_load": "a load in flight may still write the rows that are read",
    "load_waits_for_compute": "the compute stream may still read what the rows held before",
    "load_waits_for_backup": "a backup in flight may still fill the host rows that are read, "
    "or read the device rows that are written",
    "copies_wait_for_ids": "the ids go to the device in a stream of their own",
    "copies_keep_ids": "the ids die with the call, and the copies have yet to read them",
    "stage_waits_for_its_last_copy": "the copy that used a stage last may be in flight, in "
    "another stream",
    "streams_keep_stages": "a tier may be dropped while its copies are in flight",
    "layer_waits_for_main": "the layer's keys and values, or latents, may be in flight",
    "layer_waits_for_extras": "the layer's index keys, scales or state may be in flight",
    "wait_covers_main": "the host goes on when keys and values, or latents, are complete",
    "wait_covers_extras": "and when index keys, scales and state are",
    "done_counts_main": "a copy is done when keys and values, or latents, are complete",
    "done_counts_extras": "and when index keys, scales and state are (sglang 27550, 38031)",
    "free_checks_copies": "a copy in flight may still read or write the host rows",
}
"""What can be left out, and why each is there."""


class Waits:
    """Does what the points say, except for those in `skip`.

    `skip` exists to show that each point protects something: a tier without one is broken.
    Raises `ValueError` for a name that is no point.
    """

    def __init__(self, skip: Iterable[str] = ()) -> None:
        self.skip = frozenset(skip)
        if unknown := sorted(self.skip - POINTS.keys()):
            raise ValueError(f"no such point: {', '.join(unknown)}; there are {', '.join(POINTS)}")

    def holds(self, point: str) -> bool:
        """Whether `point` is kept."""
        assert point in POINTS
        return point not in self.skip

    def for_events(self, point: str, stream: Stream, events: Iterable[Event]) -> None:
        """Make `stream` wait for `events`."""
        if self.holds(point):
            for event in events:
                make_wait(stream, event)

    def on_host(self, point: str, events: Iterable[Event]) -> None:
        """Wait until `events` are reached."""
        if self.holds(point):
            for event in events:
                wait_on_host(event)

    def reached(self, point: str, events: Iterable[Event]) -> bool:
        """Whether `events` are all reached; True where the point is left out."""
        return not self.holds(point) or all(is_reached(event) for event in events)

    def keep(self, point: str, memory: Tensor, stream: Stream) -> None:
        """As `streams.keep`."""
        if self.holds(point):
            keep(memory, stream)
