"""Streams and events of any device; on the CPU there are none, and nothing to wait for."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import torch
from torch import Tensor

Stream: TypeAlias = Any
"""A stream of `torch.get_device_module(device)`; None on the CPU."""
Event: TypeAlias = Any
"""An event of that module; None on the CPU, where work is done when its call returns."""


class Streams:
    """The streams of one device: `torch.cuda` and every module that looks like it."""

    def __init__(self, device: str | torch.device) -> None:
        self.device = torch.device(device)

    def new(self) -> Stream:
        return None if self._is_cpu else self._module.Stream(device=self.device)

    def current(self) -> Stream:
        return None if self._is_cpu else self._module.current_stream(self.device)

    def within(self, stream: Stream) -> AbstractContextManager[object]:
        """Queue what the block does in `stream`."""
        if stream is None:
            return nullcontext()
        context: AbstractContextManager[object] = self._module.stream(stream)
        return context

    @property
    def _is_cpu(self) -> bool:
        return self.device.type == "cpu"

    @property
    def _module(self) -> Any:
        return torch.get_device_module(self.device)


def record(stream: Stream) -> Event:
    """An event that is reached when all that `stream` holds now is done."""
    return None if stream is None else stream.record_event()


def make_wait(stream: Stream, event: Event) -> None:
    """What `stream` is given from now on runs after `event`; the host goes on."""
    if event is not None:
        stream.wait_event(event)


def wait_on_host(event: Event) -> None:
    if event is not None:
        event.synchronize()


def is_reached(event: Event) -> bool:
    return event is None or bool(event.query())


def keep(memory: Tensor, stream: Stream) -> None:
    """Freed `memory` is not handed out again before what `stream` holds then is done."""
    if stream is not None:
        memory.record_stream(stream)
