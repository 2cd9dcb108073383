"""One check of a pool, allocator or host tier: draw, run, and raise when a clause is broken."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.allocator import Allocator
from conformance.blame import explain
from conformance.contract import Clause, Level, applies, find_clause
from conformance.diagnosis import diagnose, smallest, with_race
from conformance.geometry import Geometry, parse_geometry
from conformance.host_tier import HostTier
from conformance.isolation import Announce, carry_out
from conformance.known import Known
from conformance.pool import Pool
from conformance.probe import Watch
from conformance.programs import Program, parse_program
from conformance.runner import run
from conformance.scenarios import Scenario, StateUse, programs
from conformance.tiers.blame import Explained, explain_tier
from conformance.troubles import OnTrouble, Tally, Trouble
from conformance.violation import Finding, Subject, split_replay

if TYPE_CHECKING:
    from hypothesis.strategies import DataObject, SearchStrategy

    from conformance.journal.running import Journal


Strategy = tuple[str, str, StateUse]
"""What is checked, and the scenario from which its programs are drawn."""


@dataclass(slots=True)
class Case:
    """A pool, or an allocator or host tier with one, under one clause, and what its check has
    done so far.

    `passed` are the strategies whose programs have run without a failure in this session,
    `most` how many of the drawn programs are run, where nothing fails.
    """

    pool: Pool
    clause: Clause
    device: str
    level: Level
    version: int
    replay: str | None = None
    front: Allocator | HostTier | None = None
    passed: dict[Strategy, Tally] = field(default_factory=dict, repr=False)
    most: float = math.inf
    tally: Tally = field(default_factory=Tally)
    journal: Journal | None = field(default=None, init=False, repr=False)
    _strategy: Strategy | None = None
    _has_failed: bool = False
    _explained: dict[tuple[Geometry, Program], tuple[str, Explained]] = field(
        default_factory=dict, repr=False
    )
    _programs: SearchStrategy[tuple[Geometry, Program]] | None = None

    @property
    def declared(self) -> Pool | Allocator | HostTier:
        """What is checked."""
        return self.front or self.pool

    @property
    def subject(self) -> Subject:
        """What kind of thing that is, in words."""
        if isinstance(self.front, HostTier):
            return "host tier"
        return "pool" if self.front is None else "allocator"

    @property
    def owner(self) -> str:
        """The name of what is checked, under which the report counts this check."""
        return self.declared.name

    @property
    def name(self) -> str:
        """The name of what is checked, as the test id."""
        return self.declared.name

    @property
    def known(self) -> Known | None:
        """The declaration that this clause fails, if there is one."""
        return self.declared.known.get(self.clause.id)

    def check(self, data: DataObject, scenario: Scenario, state: StateUse = "any") -> None:
        """Run one drawn program; or the replayed one, or the witness of a known failure.

        What another check of this session has run without a failure, from the same
        strategy, is not run again: every check compares everything.
        """
        fixed = self.replay or (self.known and self.known.witness)
        if fixed:
            self.run(*self.read(fixed))
            return
        self._strategy = self.name, scenario.__name__, state
        if self._strategy in self.passed:
            return
        if self._programs is None:
            self._programs = programs(self.pool, self.device, scenario, state, self.front)
        drawn = data.draw(self._programs)
        if self._has_failed or self.tally.programs < self.most:
            self.run(*drawn)

    def complete(self) -> None:
        """The check has passed: others need not run its programs again."""
        if self._strategy is not None:
            self.passed.setdefault(self._strategy, self.tally)

    @property
    def rows_compared(self) -> int:
        """Token rows reloaded and compared, by this check or by one that ran its programs."""
        shared = self.passed.get(self._strategy) if self._strategy else None
        return max(self.tally.rows, shared.rows if shared else 0)

    @property
    def draws_from_tier(self) -> bool:
        """Whether it runs drawn programs on a host tier."""
        return self._strategy is not None and isinstance(self.front, HostTier)

    def read(self, text: str) -> tuple[Geometry, Program]:
        """A replay text as a geometry and a program; `ValueError` names what is wrong."""
        sizes, steps = split_replay(text)
        return parse_geometry(sizes, self.pool, self.device), parse_program(steps)

    def run(self, geometry: Geometry, program: Program) -> None:
        """Raise the `Violation` of the first clause that `program` shows to be broken."""
        if self.journal is not None:
            self.journal.write(f"{geometry} | {program}")
        watch = Watch(self.clause.id, self.name, self.pool, geometry, program)

        def on_trouble(trouble: Trouble) -> None:
            self._has_failed = True  # what shrinks must be run every time
            watch.after(trouble)
            self._judge(geometry, program, trouble)

        def work(on_trouble: OnTrouble, announce: Announce) -> Tally:
            return run(self.pool, geometry, program, on_trouble, self.front, announce)

        with watch:
            self.tally.add(carry_out(work, on_trouble, isolated=self.declared.isolated))

    def _judge(self, geometry: Geometry, program: Program, trouble: Trouble) -> None:
        if isinstance(self.front, Allocator):
            given = explain(self.front, geometry, program, trouble, self._binds)
            clause, program, trouble = given
        elif self.front is not None:
            key = geometry, program  # Hypothesis runs what failed once more
            if key not in self._explained:
                found = explain_tier(self.front, geometry, program, trouble, self._binds)
                self._explained[key] = found
            clause, shown = self._explained[key]
            geometry, program, trouble = shown[0], Program(shown[1]), shown[2]
        else:
            clause = diagnose(self.pool, geometry, program, trouble)
        if not self._binds(clause):
            return
        if clause in self.declared.known and clause != self.clause.id:
            self.tally.known += 1
            return
        if self.front is None:
            program, trouble = smallest(self.pool, geometry, program, trouble, clause)
            if clause == "timing_changes_nothing":
                trouble = with_race(self.pool, geometry, program, trouble)
        finding = Finding(self.name, geometry, program, trouble.step, trouble.what, self.subject)
        raise finding.violation(clause, f"test_{self.clause.id}")

    def _binds(self, clause: str) -> bool:
        """Whether what is checked is held to this clause."""
        is_on = applies(find_clause(clause), level=self.level, version=self.version)
        return is_on and clause not in self.declared.undefined
