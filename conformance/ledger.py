"""The oracle of an allocator: who owns which id, and what must be free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from conformance.copies import Problem

Ids = list[int]


@dataclass(slots=True)
class Ledger:
    """Owners of every id, beside an allocator.

    Ids lie in `first .. end - 1`; pages of `page_size` ids are free or in use as a whole.
    `totals` is what was free at first in each id space. `shared` are the ids that have had
    two owners since they were handed out, `left` those that the window has left, `pending`
    those whose last owner freed them in the free group that is open.
    """

    first: int
    end: int
    page_size: int
    totals: Mapping[str, int]
    owners: Counter[int] = field(default_factory=Counter)
    requests: dict[str, Ids] = field(default_factory=dict)
    gone: dict[str, Ids] = field(default_factory=dict)
    shared: set[int] = field(default_factory=set)
    left: set[int] = field(default_factory=set)
    pending: Counter[int] | None = None

    def no_ids(self) -> Counter[int]:
        return Counter()

    def room(self) -> int:
        """How many ids a new request can get, in whole pages, in every space."""
        return min(self.totals[space] - self._used(space) for space in self.totals)

    def fits(self, request: str, count: int) -> bool:
        """Whether there is room for `count` more ids of `request`."""
        held = len(self.requests.get(request, ()))
        spare = -held % self.page_size
        return self._rounded(max(0, count - spare)) <= self.room()

    def refusals(self, request: str, ids: Tensor, count: int) -> Iterator[Problem]:
        """What is wrong with `ids`, handed out as `count` more for `request`."""
        if ids.dtype not in (torch.int32, torch.int64) or ids.dim() != 1:
            yield "ids_name_rows", f"ids are {ids.dtype} of shape {tuple(ids.shape)}"
            return
        values = ids.tolist()
        if len(values) != count:
            yield "ids_name_rows", f"{len(values)} ids were handed out, {count} were asked for"
        for at, value in enumerate(values):
            if not self.first <= value < self.end:
                reserved = 0 <= value < self.first
                why = "reserved" if reserved else f"not in {self.first}..{self.end - 1}"
                yield "ids_name_rows", f"id {value} was handed out: it is {why}"
            owner = next((name for name, held in self.requests.items() if value in held), None)
            if owner is not None:
                what = f"id {value} was handed out to {request}, but {owner} owns it"
                yield "ids_are_handed_out_once", what
            elif value in values[:at]:
                yield "ids_are_handed_out_once", f"id {value} was handed out twice in one call"
        yield from self._page_run(request, values)

    def _page_run(self, request: str, values: Ids) -> Iterator[Problem]:
        held = self.requests.get(request, [])
        last = held[-1] if held else None
        for value in values:
            enters = last is None or (last + 1) % self.page_size == 0
            if value % self.page_size if enters else value != last + 1:  # type: ignore[operator]
                where = "enters a page" if enters else f"follows {last} in a page"
                yield (
                    "pages_run_slot_after_slot",
                    f"id {value} {where} of {self.page_size} rows for {request}",
                )
                return
            last = value

    def hand_out(self, request: str, ids: Sequence[int]) -> None:
        self.requests.setdefault(request, []).extend(ids)
        self.owners.update(ids)
        self.left.difference_update(ids)
        self.shared.difference_update(ids)

    def share(self, request: str, new: str, tokens: int) -> Ids:
        """The first `tokens` ids of `request`, now owned by `new` too."""
        ids = self.requests[request][:tokens]
        self.hand_out_again(new, ids)
        return ids

    def hand_out_again(self, request: str, ids: Ids) -> None:
        self.requests[request] = list(ids)
        self.owners.update(ids)
        self.shared.update(ids)

    def free(self, requests: Sequence[str], start: int) -> None:
        """These requests give up their ids from position `start` on."""
        for request in requests:
            ids = self.requests[request][start:]
            self.gone[request] = ids
            self.requests[request] = self.requests[request][:start]
            if not start:
                del self.requests[request]
            self.owners.subtract(ids)
            self.owners = +self.owners
            self.left &= self.owners.keys()
            if self.pending is not None:
                self.pending.update(i for i in ids if not self.owners[i])

    def clear(self) -> None:
        self.gone |= self.requests
        self.requests, self.owners, self.pending = {}, Counter(), None
        self.shared, self.left = set(), set()

    def problems(
        self, available: Mapping[str, int], mapping: Tensor | None, blame: str
    ) -> Iterator[Problem]:
        """What does not add up after a step; conservation is blamed on `blame`."""
        for space, total in self.totals.items():
            owned = self._used(space)
            most = total - owned
            least = most - (self._rounded_pages(self.pending) if self.pending else 0)
            if space == "window" and (self.pending is not None or self._is_leaving()):
                continue
            if not least <= available[space] <= most:
                name = "" if len(self.totals) == 1 else f" of {space} ids"
                expected = str(most) if least == most else f"{least} to {most}"
                yield (
                    blame,
                    f"{available[space]}{name} are free, expected {expected}: "
                    f"{owned} of {total} are owned",
                )
        if mapping is not None and self.pending is None:
            yield from self._mapping_problems(mapping, available["window"])

    def _mapping_problems(self, mapping: Tensor, available: int) -> Iterator[Problem]:
        clause = "mapping_dies_with_its_page"
        entries = {i: row for i, row in enumerate(mapping.tolist()[: self.end]) if row > 0}
        for i, row in entries.items():
            if i not in self.owners:
                yield clause, f"nobody owns id {i}, but it is mapped to window row {row}"
                return
        for i in self.owners:
            if i not in entries and not self._page_of(i) & self.left:
                yield clause, f"id {i} is in the window, but is mapped to no window row"
                return
        rows = list(entries.values())
        for i, row in entries.items():
            if rows.count(row) > 1:
                yield clause, f"window row {row} has two ids: {i} is one of them"
                return
        used = self._rounded_pages(rows)
        if used != self.totals["window"] - available:
            yield (
                clause,
                f"{self.totals['window'] - available} window rows are in use, but the "
                f"mapping's pages hold {used}",
            )

    def _is_leaving(self) -> bool:
        """Whether some page is in the window with a part of its ids only."""
        return any(
            not {i for i in self._page_of(i) if i in self.owners} <= self.left for i in self.left
        )

    def _used(self, space: str) -> int:
        ids = self.owners if space == "token" else self.owners.keys() - self.left
        return self._rounded_pages(ids)

    def _page_of(self, i: int) -> set[int]:
        first = i - i % self.page_size
        return set(range(first, first + self.page_size))

    def _rounded(self, count: int) -> int:
        return -(-count // self.page_size) * self.page_size

    def _rounded_pages(self, ids: object) -> int:
        return len({i // self.page_size for i in ids}) * self.page_size  # type: ignore[attr-defined]
