"""What a run reports: troubles, and how much was done."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["raised", "payload", "companion", "state", "outside", "clause"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that went wrong at a step.

    `kind` is `clause` where the step itself says which clause is broken: `clause` names it.
    Else it is an exception, a difference inside the index set in a buffer of that role, or
    one outside it (`clause` names the plainest explanation); which clause that breaks
    depends on what makes it go away: see `diagnosis`.
    """

    step: int
    kind: Kind
    what: str
    clause: str = ""


@dataclass(slots=True)
class Tally:
    """What a check did: programs run, reloads compared, rows moved, known failures met, ids
    handed out."""

    programs: int = 0
    reloads: int = 0
    rows: int = 0
    known: int = 0
    ids: int = 0

    def add(self, other: Tally) -> None:
        self.programs += other.programs
        self.reloads += other.reloads
        self.rows += other.rows
        self.known += other.known
        self.ids += other.ids


class StopProgram(Exception):  # noqa: N818
    """Ends a program early: what follows would only repeat a failure already told."""


OnTrouble = Callable[[Trouble], None]
"""Called at each trouble; returns to go on, raises to end the program."""


def told(error: Exception) -> str:
    """The error, and where in the engine it was raised: `TypeError: ... (mla.py:30)`."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    message = str(error).split("\n", 1)[0]
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{what} ({Path(place.filename).name}:{place.lineno})"
