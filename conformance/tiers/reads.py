"""What the current stream reads while copies are in flight: taken then, judged later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from conformance.cells import Cells
from conformance.model import Difference, Model
from conformance.tiers.flights import Flight
from conformance.timing import Timing, told_late

if TYPE_CHECKING:
    from conformance.simdevice import Pending


@dataclass(slots=True, eq=False)
class Look:
    """One read of one layer of a buffer: at step `step`, of `cells`, which must hold `must`,
    uint8 `[n, width]`. `brought` is the load that brought the rows, `late` are operations that
    it should have come after."""

    step: int
    number: int
    layer: int
    cells: Tensor
    must: Tensor
    brought: Flight | None = None
    found: Tensor | None = None
    late: list[Pending] = field(default_factory=list)

    def difference(self) -> tuple[Difference, Tensor, Tensor] | None:
        """The first cell that was wrong, what it held, and what it must hold."""
        assert self.found is not None, "the stream has finished"
        wrong = (self.found != self.must).any(-1)
        if not bool(wrong.any()):
            return None
        at = int(wrong.nonzero()[0])
        cell, others = int(self.cells[at]), int(wrong.sum()) - 1
        found = Difference(self.number, self.layer, cell, inside=True, others=others)
        return found, self.found[at], self.must[at]

    def too_early(self, model: Model) -> str:
        """What of a load was still under way, in words; "" where nothing was."""
        if not self.late or self.difference() is None:
            return ""  # what spans say is a suspicion; the bytes decide
        buffer = model.actual[self.number]
        place = f"{buffer.name}, layer {buffer.first_layer + self.layer}"
        return f"{place}, was read too early: {told_late(self.late[0])} when it was"


def look(
    model: Model,
    timing: Timing,
    cells: Cells,
    step: int,
    *,
    layer: int | None = None,
    load: Flight | None = None,
    brought: Flight | None = None,
) -> list[Look]:
    """Read `cells` in every buffer, in every layer or in one, when the current stream comes to
    it. What `load` has queued should be over then."""
    looks: list[Look] = []
    for number, image in enumerate(model.expected):
        places, _ = image.places(cells)
        layers = range(len(image.layers)) if layer is None else (layer,)
        if places.numel():
            payload = image.gather(places)
            looks += [
                Look(step, number, at, places, payload[at], brought)
                for at in layers
                if at < len(image.layers)
            ]
    before = timing.unfinished(load.queued) if load else []
    for each in looks:
        _take(each, model, timing, before)
    return looks


def _take(each: Look, model: Model, timing: Timing, before: Sequence[Pending]) -> None:
    buffer = model.actual[each.number]
    rows = buffer.rows[each.layer]
    writers = [op for op in before if op.will_write(rows)]

    def take() -> None:
        each.found = rows[buffer.at(each.cells)]
        if writers:
            first, last = writers[0].serial, writers[-1].serial
            after = timing.unfinished(range(first, last + 1))
            each.late = [op for op in after if op.will_write(rows)]

    timing.read(take, rows)
