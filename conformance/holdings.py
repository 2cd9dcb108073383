"""Who holds which rows, and which rows a copy was taken from, at any step of a program."""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.programs import (
    OVERWRITE,
    Claim,
    Extend,
    Free,
    Offload,
    Program,
    Reload,
    Resume,
    Retract,
    Step,
    Write,
)
from conformance.step_text import Rows


@dataclass(frozen=True, slots=True)
class Taken:
    """A copy: the request as one write of the rows that were offloaded, and the offload."""

    write: Write
    offload: Offload


@dataclass(slots=True)
class Holdings:
    """What the steps so far have left; steps that leave rows to an allocator are not followed."""

    rows: dict[str, Rows] = field(default_factory=dict)
    states: dict[str, int | None] = field(default_factory=dict)
    copies: dict[str, Taken] = field(default_factory=dict)

    @classmethod
    def after(cls, steps: tuple[Step, ...]) -> Holdings:
        holdings = cls()
        for step in steps:
            holdings.follow(step)
        return holdings

    def follow(self, step: Step) -> None:
        match step:
            case Write(request, rows, state):
                self.rows[request], self.states[request] = rows, state
            case Claim(request, rows):
                self.rows[request], self.states[request] = rows, None
            case Extend(request, rows):
                self.rows[request] = self.rows.get(request, ()) + (rows or ())
            case Resume(request, _, rows, state):
                self.rows[request], self.states[request] = rows or (), state
            case Free(requests, start):
                for request in requests:
                    self.rows[request] = self.rows.get(request, ())[:start]
            case Offload() | Retract():
                self.copies[step.copy] = self.taken(step)

    def taken(self, step: Offload | Retract) -> Taken:
        """The copy that `step` takes now."""
        rows, state = self.rows.get(step.request, ()), self.states.get(step.request)
        if isinstance(step, Retract):
            whole = Offload(step.request, step.copy, state)
            return Taken(Write(step.request, rows, state), whole)
        part = Write(step.request, rows[step.start : step.stop], state)
        return Taken(part, Offload(step.request, step.copy, step.state, form=step.form))


def reload_of(step: Step) -> Reload | None:
    """The reload that a step is or holds."""
    if isinstance(step, Resume):
        return Reload(step.copy, step.rows or (), step.state)
    return step if isinstance(step, Reload) else None


def plain(program: Program) -> Program:
    """The copies and reloads of a program and nothing else: each request is written whole
    right before it is offloaded, and everything is overwritten before each reload."""
    holdings, steps = Holdings(), list[Step]()
    for step in program:
        if isinstance(step, Offload | Retract):
            taken = holdings.taken(step)
            steps += [taken.write, taken.offload]
        reload = reload_of(step)
        if reload is not None:
            steps += [OVERWRITE, reload]
        holdings.follow(step)
    return Program(tuple(steps))
