"""The host rows of a tier: which are in use, and what is refused about them."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from reference_pools.allocators import HostAllocator
from reference_pools.host.ids import HostIds, UnitIds, check_pages
from reference_pools.host.pool import HostPool
from reference_pools.host.transfers import Transfer
from reference_pools.state import as_rows


class HostRows:
    """The host rows of one tier that are in use: tokens, and states where there are any.

    `allocator` may be the caller's; the states have one of their own.
    """

    def __init__(self, host_pool: HostPool, allocator: HostAllocator) -> None:
        """`ValueError` for an allocator that does not hand out the rows of `host_pool`.

        One that counts other rows sends copies past the end of the memory (vllm 50443).
        """
        if (allocator.size, allocator.page_size) != (host_pool.size, host_pool.page_size):
            raise ValueError(
                f"the allocator has {allocator.size} ids in pages of {allocator.page_size}, "
                f"the host pool {host_pool.size} rows in pages of {host_pool.page_size}"
            )
        self.page_size = host_pool.page_size
        self.tokens = allocator
        self.states = host_pool.state_allocator()

    def take(self, tokens: int, states: int | None) -> HostIds | None:
        """Rows for so many tokens and states; None, and nothing changed, without room for all.

        Both spaces are asked before one is touched.
        """
        count = -(-tokens // self.page_size) * self.page_size
        if count > self.tokens.available():
            return None
        if states is None or self.states is None:
            return HostIds(_given(self.tokens.alloc(count)))
        if states > self.states.available():
            return None
        return HostIds(_given(self.tokens.alloc(count)), _given(self.states.alloc(states)))

    def give_back(self, host: HostIds) -> None:
        self.tokens.free(host.tokens)
        if host.states is not None and self.states is not None:
            self.states.free(host.states)

    def check_in_use(self, host: HostIds) -> UnitIds:
        """The rows of `host`; `ValueError` for one that is not in use or not in whole pages."""
        tokens = self.tokens.free_list.check_in_use("host_ids", host.tokens)
        check_pages("host_ids", tokens, self.page_size)
        if len(tokens) % self.page_size:
            raise ValueError(
                f"host_ids ends with {int(tokens[-1])}, inside a page of {self.page_size} rows"
            )
        if host.states is None:
            return UnitIds.of(tokens, None, self.page_size)
        if self.states is None:
            raise ValueError(f"the host holds no state, but was given {host.states}")
        states = self.states.free_list.check_in_use("host states", as_rows(host.states))
        return UnitIds.of(tokens, states, self.page_size)


def check_load(host: UnitIds, device: UnitIds, saved: int | None) -> None:
    """Refuse host rows that are not as many as the device rows: `ValueError`.

    `saved` is the number of tokens of a backup, None where it is not known.
    """
    wanted = len(device.token)
    if saved is not None and saved != wanted:
        raise ValueError(f"the backup holds {saved} tokens, but {wanted} ids were given")
    if len(host.page) != len(device.page):
        raise ValueError(
            f"{len(host.token)} host ids are {len(host.page)} pages, "
            f"but {wanted} device ids are {len(device.page)}"
        )
    if len(host.state) != len(device.state):
        raise ValueError(
            f"{len(host.state)} host states, but {len(device.state)} state ids were given"
        )


def check_idle(host: UnitIds, transfers: Iterable[Transfer]) -> None:
    """Refuse host rows that a transfer in flight reads or writes: `RuntimeError`."""
    for transfer in transfers:
        for name, ids in transfer.host_rows.shared(host).items():
            if not transfer.done:
                raise RuntimeError(
                    f"{name} {min(ids)} is in use by a {transfer.kind} in flight; "
                    f"free it when the {transfer.kind} is done"
                )


def _given(ids: Tensor | None) -> Tensor:
    assert ids is not None, "there was room"
    return ids
