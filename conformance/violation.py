"""A broken clause, told so that its reader can believe it and run it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from conformance.contract import CLAUSES
from conformance.geometry import Geometry
from conformance.journal.records import replay_command
from conformance.programs import Program

Subject = Literal["pool", "allocator", "host tier"]


class Violation(AssertionError):  # noqa: N818
    """A clause is broken; the message is what the user reads. `clause` names it, `finding`
    is the program that shows it, where there is one."""

    clause: str
    finding: Finding | None = None


@cache
def violation_of(clause: str) -> type[Violation]:
    """The exception type of one clause.

    Hypothesis tells failures apart by type and place, so a type of its own keeps
    shrinking from sliding from one broken clause into another.
    """
    return type(f"Violation_{clause}", (Violation,), {"clause": clause})


def violation(clause: str, evidence: Sequence[tuple[str, str]]) -> Violation:
    """The clause's sentence, then the evidence, one `label  text` a line."""
    lines = [f"{clause}: {CLAUSES[clause].sentence}", ""]
    lines += [f"  {label:<9} {text}".rstrip() for label, text in evidence]
    return violation_of(clause)("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Finding:
    """What was seen on `pool`, the name of a pool, allocator or host tier: after which step of
    which program, and what was wrong. `step` is None where what failed was no step of the
    program."""

    pool: str
    geometry: Geometry
    program: Program
    step: int | None
    what: str
    subject: Subject = "pool"

    @property
    def replay(self) -> str:
        """The text that `--kv-replay` takes."""
        return f"{self.geometry} | {self.program}"

    def violation(self, clause: str, check: str) -> Violation:
        """The exception for the test `check`: evidence, program, and how to run it again."""
        error = violation(clause, self.evidence(check))
        error.finding = self
        return error

    def evidence(self, check: str) -> list[tuple[str, str]]:
        """What was seen, label and text, and last how the test `check` sees it again."""
        steps = [str(step) for step in self.program]
        return [
            (self.subject, self.pool),
            ("geometry", str(self.geometry)),
            *zip(["program", *[""] * (len(steps) - 1)], steps, strict=True),
            *([("after", steps[self.step])] if self.step is not None else []),
            ("found", self.what),
            ("replay", replay_command(check, self.pool, self.replay)),
        ]


def split_replay(text: str) -> tuple[str, str]:
    """`geometry | program` in its two parts; the geometry may be left out."""
    geometry, bar, program = text.rpartition("|")
    return (geometry if bar else ""), program
