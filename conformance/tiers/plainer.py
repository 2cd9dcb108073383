"""The same program told more plainly: one page each, low pages, requests in order, the first
geometry."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.fewest import Steps
from conformance.geometry import Geometry, geometries
from conformance.pool import Pool
from conformance.programs import Step
from conformance.step_text import Rows


def plainer(pool: Pool, geometry: Geometry, steps: Steps) -> Iterator[tuple[Geometry, Steps]]:
    """Ways to tell `steps`, the plainest first; without them where they are told so already."""
    first = replace(geometries(pool, geometry.device)[0], schedule=geometry.schedule)
    short = tuple(_first_page(step, geometry.page_size) for step in steps)
    for plain, each in itertools.product(
        dict.fromkeys((first, geometry)), dict.fromkeys((short, steps))
    ):
        told = _Names(geometry.page_size, plain.page_size).of_all(each)
        fits = all(_fits(step, plain) for step in told)
        schedules = ("lazy", "lifo", geometry.schedule) if geometry.schedule else ("",)
        for schedule in dict.fromkeys(schedules) if fits else ():
            found = replace(plain, schedule=schedule), told
            if found == (geometry, steps):
                return
            yield found


def _fits(step: Step, geometry: Geometry) -> bool:
    state: int | None = getattr(step, "state", None)
    has_rows = max(_rows(step), default=0) < geometry.token_rows
    return has_rows and (state is None or state < geometry.state_rows)


def _first_page(step: Any, page_size: int) -> Any:
    return replace(step, rows=_rows(step)[:page_size]) if _rows(step) else step


@dataclass(slots=True)
class _Names:
    """New numbers for pages, states and requests, in the order in which they are met."""

    page_size: int
    new_page_size: int
    pages: dict[int, int] = field(default_factory=dict)
    states: dict[int, int] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)

    def of_all(self, steps: Steps) -> Steps:
        return tuple(map(self._of, steps))

    def _of(self, step: Any) -> Any:
        if hasattr(step, "call"):
            return replace(step, call=self._of(step.call))
        new: dict[str, Any] = {}
        if hasattr(step, "request"):
            name = self.requests.setdefault(step.request, f"r{len(self.requests)}")
            new["request"] = name
        if _rows(step):
            new["rows"] = self._rows(step.rows)
        if getattr(step, "state", None) is not None:
            new["state"] = self.states.setdefault(step.state, 1 + len(self.states))
        return replace(step, **new)

    def _rows(self, rows: Rows) -> Rows:
        pages = dict.fromkeys(row // self.page_size for row in rows)
        new = [self.pages.setdefault(page, 1 + len(self.pages)) for page in pages]
        size = self.new_page_size
        return tuple(page * size + slot for page in new for slot in range(size))


def _rows(step: Step) -> Rows:
    rows: Rows | None = getattr(step, "rows", None)
    return rows or ()
