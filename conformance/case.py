"""One check of one pool: draw, run, and raise when a clause is broken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.contract import Clause, Level, applies, find_clause
from conformance.diagnosis import diagnose, smallest
from conformance.geometry import Geometry, parse_geometry
from conformance.pool import Known, Pool
from conformance.programs import Program, parse_program
from conformance.runner import Tally, Trouble, run
from conformance.scenarios import Scenario, StateUse, programs
from conformance.violation import Finding, split_replay

if TYPE_CHECKING:
    from hypothesis.strategies import DataObject, SearchStrategy


@dataclass(slots=True)
class Case:
    """A pool under one clause, and what its check has done so far."""

    pool: Pool
    clause: Clause
    device: str
    level: Level
    version: int
    replay: str | None = None
    tally: Tally = field(default_factory=Tally)
    _programs: SearchStrategy[tuple[Geometry, Program]] | None = None

    @property
    def owner(self) -> str:
        """The pool's name, under which the report counts this check."""
        return self.pool.name

    @property
    def name(self) -> str:
        """The pool's name, as the test id."""
        return self.pool.name

    @property
    def known(self) -> Known | None:
        """The declaration that this clause fails, if there is one."""
        return self.pool.known.get(self.clause.id)

    def check(self, data: DataObject, scenario: Scenario, state: StateUse = "any") -> None:
        """Run one drawn program; or the replayed one, or the witness of a known failure."""
        fixed = self.replay or (self.known and self.known.witness)
        if fixed:
            geometry, program = self.read(fixed)
        else:
            if self._programs is None:
                self._programs = programs(self.pool, self.device, scenario, state)
            geometry, program = data.draw(self._programs)
        self.run(geometry, program)

    def read(self, text: str) -> tuple[Geometry, Program]:
        """A replay text as a geometry and a program; `ValueError` names what is wrong."""
        sizes, steps = split_replay(text)
        return parse_geometry(sizes, self.pool, self.device), parse_program(steps)

    def run(self, geometry: Geometry, program: Program) -> None:
        """Raise the `Violation` of the first clause that `program` shows to be broken."""

        def on_trouble(trouble: Trouble) -> None:
            self._judge(geometry, program, trouble)

        self.tally.add(run(self.pool, geometry, program, on_trouble))

    def _judge(self, geometry: Geometry, program: Program, trouble: Trouble) -> None:
        clause = diagnose(self.pool, geometry, program, trouble)
        if not applies(find_clause(clause), level=self.level, version=self.version):
            return
        if clause in self.pool.known and clause != self.clause.id:
            self.tally.known += 1
            return
        program, trouble = smallest(self.pool, geometry, program, trouble)
        finding = Finding(self.pool.name, geometry, program, trouble.step, trouble.what)
        raise finding.violation(clause, f"test_{self.clause.id}")
