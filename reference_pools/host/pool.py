"""Host memory for the rows of a device pool: every buffer of it, and ids of its own."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from reference_pools.allocators import HostAllocator
from reference_pools.base import KVPool
from reference_pools.host.layout import HostBuffer, Layout, Row, check_row
from reference_pools.host.parts import Part, parts_of, state_of


class HostPool:
    """Rows for `pages` pages of tokens, and for `states` states where the pool holds state.

    `buffers` has every buffer of the device pool by its name: scales, index keys and state
    travel as keys and values do (sglang 39089, 27504). Token ids are `0 .. size - 1`, in
    pages of the device pool's page size; index keys have a row per page. State ids are
    `0 .. states - 1`. No row is reserved: no kernel pads its writes on the host.
    """

    def __init__(
        self,
        device_pool: KVPool,
        *,
        pages: int,
        states: int | None = None,
        layout: Layout = "layer_first",
    ) -> None:
        """`states` defaults to those of the device pool.

        `ValueError` for pages or states that are not positive, states for a pool without
        state, another layout, or rows that do not fit; `TypeError` as `parts_of`.
        """
        state = state_of(device_pool)
        if pages <= 0 or (states is not None and states <= 0):
            raise ValueError(f"pages {pages} and states {states} must be positive")
        if state is None and states is not None:
            raise ValueError(f"states {states} for a pool that holds no state")
        self.page_size = device_pool.page_size
        self.pages = pages
        self.size = pages * self.page_size
        self.states = state.size if state and states is None else states or 0
        self.layout = layout
        self.pin = device_pool.device.type != "cpu"
        self.buffers: dict[str, HostBuffer] = {}
        for part in parts_of(device_pool):
            for name, layers in part.buffers.items():
                self.buffers[name] = self._buffer(part, name, layers)

    def row_of(self, name: str, layers: Sequence[Tensor]) -> Row:  # noqa: ARG002
        """The row of buffer `name`, taken from the device's memory and not from a config."""
        return Row.of(layers[0])

    def check_fits(self, device_pool: KVPool) -> None:
        """Refuse a device pool of other buffers, layers, rows or pages: `ValueError`."""
        if device_pool.page_size != self.page_size:
            raise ValueError(
                f"host pages hold {self.page_size} rows, device pages {device_pool.page_size}"
            )
        device = device_pool.buffers()
        if device.keys() != self.buffers.keys():
            raise ValueError(f"the host has {list(self.buffers)}, the device {list(device)}")
        for name, layers in device.items():
            host = self.buffers[name]
            if host.layers != len(layers):
                raise ValueError(f"{name}: {host.layers} layers on the host, not {len(layers)}")
            check_row(name, host.row, layers)

    def allocator(self) -> HostAllocator:
        """A new allocator of the token ids."""
        return HostAllocator(size=self.size, page_size=self.page_size)

    def state_allocator(self) -> HostAllocator | None:
        """A new allocator of the state ids, None where there are none."""
        return HostAllocator(size=self.states, page_size=1) if self.states else None

    def _buffer(self, part: Part, name: str, layers: list[Tensor]) -> HostBuffer:
        row = self.row_of(name, layers)
        check_row(name, row, layers)
        return HostBuffer(
            row,
            layers=len(layers),
            pages=self.states if part.unit == "state" else self.pages,
            per_page=self.page_size if part.unit == "token" else 1,
            layout=self.layout,
            pin=self.pin,
        )
