"""A program being written, step by step, from what Hypothesis draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from conformance.allocator import Allocator
from conformance.geometry import Geometry
from conformance.host_tier import HostTier
from conformance.index_sets import (
    Draw,
    Space,
    draw_form,
    draw_rows_like,
    draw_state,
)
from conformance.pool import Pool
from conformance.programs import OVERWRITE, PLAIN, Form, Offload, Reload, Step, Write
from conformance.step_text import Rows

StateUse = Literal["any", "always", "never"]


@dataclass(slots=True)
class Script:
    """A program being written: what was drawn so far, and names not yet used."""

    draw: Draw
    pool: Pool
    geometry: Geometry
    state: StateUse = "any"
    front: Allocator | HostTier | None = None
    steps: list[Step] = field(default_factory=list)
    requests: int = 0
    copies: int = 0

    @property
    def space(self) -> Space:
        return Space(self.geometry, self.pool.ids == "page")

    def can(self, verb: str) -> bool:
        """Whether the pool has this verb."""
        return verb not in self.pool.lacks

    @property
    def uses_state(self) -> bool:
        """Whether requests of this program may have state."""
        return self.pool.has_state and self.state != "never" and self.can("state")

    def new_state(self) -> int | None:
        """A state id, where the pool has state and this program uses it."""
        if not self.uses_state:
            return None
        if self.state == "always":
            return self.other_state()
        size = self.geometry.state_size
        drawn = self.draw(size + 1 + size // 2)
        return None if drawn == 0 or drawn > size else drawn

    def forms(self) -> tuple[Form, Form]:
        """How ids are passed to offload and to reload; a state id is 0-dim in both or neither."""
        first = draw_form(self.draw, has_state=self.pool.has_state)
        second = draw_form(self.draw, has_state=False)
        return first, replace(second, scalar_state=first.scalar_state)

    def write(self, rows: Rows) -> Write:
        """A new request in `rows`."""
        step = Write(f"r{self.requests}", rows, self.new_state())
        self.requests += 1
        self.steps.append(step)
        return step

    def offload(
        self, write: Write, *, form: Form = PLAIN, part: tuple[int, int] | None = None
    ) -> str:
        name = f"c{self.copies}"
        self.copies += 1
        start, stop = part if part else (0, None)
        self.steps.append(Offload(write.request, name, write.state, start, stop, form))
        return name

    def reload(self, copy: str, rows: Rows, of: Write, *, form: Form = PLAIN) -> None:
        state = None if of.state is None else self.other_state()
        self.steps.append(Reload(copy, rows, state, form))

    def saved(self, rows: Rows) -> tuple[Write, str]:
        """A new request in `rows`, offloaded, and its rows overwritten: the write, the copy."""
        write = self.write(rows)
        copy = self.offload(write)
        self.overwrite()
        return write, copy

    def round_trip(self, write: Write, rows: Rows) -> None:
        """Offload `write`, overwrite everything, and reload it into its own `rows`."""
        copy = self.offload(write)
        self.overwrite()
        self.steps.append(Reload(copy, rows, write.state))

    def other_state(self) -> int:
        return draw_state(self.draw, self.geometry)

    def elsewhere(self, rows: Rows, start: int) -> Rows:
        return draw_rows_like(self.draw, self.space, len(rows), start)

    def overwrite(self) -> None:
        self.steps.append(OVERWRITE)


Scenario = Callable[[Script], None]
