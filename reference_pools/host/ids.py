"""Ids of the host tier: what is refused, and the ids of each unit."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from reference_pools.base import KVPool, check_ids
from reference_pools.host.parts import Unit, state_of
from reference_pools.state import as_rows


@dataclass(frozen=True, slots=True, eq=False)
class HostIds:
    """Host rows of one request: tokens in whole pages, and states; int64 `[n]` on the CPU."""

    tokens: Tensor
    states: Tensor | None = None


@dataclass(frozen=True, slots=True)
class UnitIds:
    """The rows of one transfer, on one side, by the unit of the buffer that they index."""

    token: tuple[int, ...]
    page: tuple[int, ...]
    state: tuple[int, ...]

    @classmethod
    def of(cls, tokens: Tensor, states: Tensor | None, page_size: int) -> UnitIds:
        """Of ids on the CPU, tokens from the begin of a page on."""
        run = tuple(tokens.tolist())
        pages = tuple(first // page_size for first in run[::page_size])
        return cls(run, pages, () if states is None else tuple(states.tolist()))

    def unit(self, unit: Unit) -> tuple[int, ...]:
        """The ids of buffers whose row is a `unit`."""
        return {"token": self.token, "page": self.page, "state": self.state}[unit]

    def first(self, tokens: int) -> UnitIds:
        """Only the first `tokens` tokens; the page in which they end, and the states, stay."""
        return UnitIds(self.token[:tokens], self.page, self.state)

    def shared(self, other: UnitIds) -> dict[str, set[int]]:
        """Pages and states that are in both, if any; index keys are copied by the page."""
        both = {
            "page": {*self.page} & {*other.page},
            "state": {*self.state} & {*other.state},
        }
        return {name: ids for name, ids in both.items() if ids}


def device_ids_of(pool: KVPool, device_ids: Tensor, state_id: Tensor | None) -> UnitIds:
    """The device rows of one request, refused as `check_ids` and `check_pages` do.

    `ValueError` for a state id where the pool holds no state. Ids on a device are read on
    the host, which waits for the stream that computes them; ids on the CPU cost no wait.
    """
    tokens = _on_host(device_ids)
    check_ids("device_ids", tokens, pool.page_size, pool.token_rows)
    check_pages("device_ids", tokens, pool.page_size)
    if state_id is None:
        return UnitIds.of(tokens, None, pool.page_size)
    state = state_of(pool)
    if state is None:
        raise ValueError(f"this pool holds no state, but was given state_id {state_id}")
    states = _on_host(as_rows(state_id))
    check_ids("state_id", states, 1, state.size + 1)
    return UnitIds.of(tokens, states, pool.page_size)


def check_pages(name: str, ids: Tensor, page_size: int) -> None:
    """Refuse ids, `[n]` on the CPU, that are not pages in order; the last may be partial.

    A page is backed up as a whole, so a run that begins inside one would take rows of
    somebody else. `ValueError` names the first id that is out of place.
    """
    run = ids.tolist()
    for at, row in enumerate(run):
        if not at % page_size:
            if row % page_size:
                raise ValueError(
                    f"{name} contains {row} where a page begins; "
                    f"pages of {page_size} rows begin at their multiples"
                )
        elif row != run[at - 1] + 1:
            raise ValueError(
                f"{name} contains {row} after {run[at - 1]}, "
                f"which does not follow in a page of {page_size} rows"
            )


def _on_host(ids: Tensor) -> Tensor:
    """A copy on the CPU; what is no tensor is left for `check_ids` to refuse."""
    return ids.to("cpu", copy=True) if isinstance(ids, Tensor) else ids
