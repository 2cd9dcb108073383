"""A device module whose events are reached when a test says so; the bytes are on the CPU.

It shows which events are waited for, and that nothing is called done before them. That the
waits are enough is shown on a device whose copies are late.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from reference_pools.host import streams, waits


class Event:
    """Reached when `module.reach` says so, or when somebody waits for it on the host."""

    def __init__(self, stream: Stream, place: int) -> None:
        self.stream = stream
        self.place = place
        self.reached = False

    def query(self) -> bool:
        return self.reached

    def synchronize(self) -> None:
        self.stream.module.log.append(("host", self))
        self.reached = True


class Stream:
    def __init__(self, module: LateModule, name: str) -> None:
        self.module = module
        self.name = name
        self.events: list[Event] = []

    def record_event(self) -> Event:
        self.events.append(Event(self, len(self.events)))
        return self.events[-1]

    def wait_event(self, event: Event) -> None:
        self.module.log.append((self, event))


class LateModule:
    """Stands in for `torch.cuda`. `log` has (who waits, event), `kept` (memory, stream)."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, Event]] = []
        self.kept: list[tuple[Tensor, Stream]] = []
        self.compute = Stream(self, "compute")
        self.active = self.compute
        self.made: list[Stream] = []

    def Stream(self, device: torch.device) -> Stream:  # noqa: N802
        self.made.append(Stream(self, f"stream {len(self.made)}"))
        return self.made[-1]

    def current_stream(self, device: torch.device) -> Stream:
        return self.active

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self.active = self.active, stream
        yield
        self.active = before

    def waited(self, who: Any) -> list[Event]:
        return [event for waiter, event in self.log if waiter is who]


def install(monkeypatch: pytest.MonkeyPatch) -> LateModule:
    """Every pool's device looks like one with streams from here on."""
    module = LateModule()
    monkeypatch.setattr(streams.Streams, "_is_cpu", False)
    monkeypatch.setattr(streams.torch, "get_device_module", lambda device: module)
    monkeypatch.setattr(waits, "keep", lambda memory, stream: module.kept.append((memory, stream)))
    return module


def reach(events: list[Event]) -> None:
    for event in events:
        event.reached = True
