"""Which queue goes on next: the schedules, and their text."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

Chooser = Callable[[int], int]
"""Takes a count, returns an index below it. 0 is "nothing runs that need not"."""

CHOSEN = "chosen:"
RANDOM = "random:"


@dataclass(slots=True)
class Schedule:
    """Decides the order in which queues drain.

    Without a `chooser`, only what must run does: in the order of the streams, or with
    `newest_first` in the opposite one. With one, other queues may go on in between.
    """

    text: str
    eager: bool = False
    newest_first: bool = False
    chooser: Chooser | None = None
    chosen: list[int] = field(default_factory=list)

    def pick(self, count: int) -> int:
        """One of `count` queues, the index of it. `ValueError` if the chooser gave none."""
        if count == 1:
            return 0
        if self.chooser is None:
            return count - 1 if self.newest_first else 0
        index = self.chooser(count)
        if not 0 <= index < count:
            raise ValueError(f"the schedule chose {index} of {count} queues")
        self.chosen.append(index)
        return index

    def replay_text(self) -> str:
        """What `parse` takes to run the same schedule again, one line."""
        if self.text:
            return self.text
        used = len(self.chosen)
        while used and not self.chosen[used - 1]:
            used -= 1
        return CHOSEN + ",".join(map(str, self.chosen[:used]))


def parse(text: str) -> Schedule:
    """The schedule that `text` names; `ValueError` for any other text.

    "lazy": nothing runs before it must. "lifo": as lazy, but a device-wide wait drains the
    newest stream first. "eager": all runs at once. "random:7": drawn from a seed.
    "chosen:3,0,1": these choices, then 0; one that is too large is the last there is.
    """
    if text in ("lazy", "lifo", "eager"):
        return Schedule(text, eager=text == "eager", newest_first=text == "lifo")
    try:
        if text.startswith(RANDOM):
            return Schedule(text, chooser=random.Random(int(text[len(RANDOM) :])).randrange)
        if text.startswith(CHOSEN):
            choices = [int(part) for part in text[len(CHOSEN) :].split(",") if part]
            if all(choice >= 0 for choice in choices):
                return Schedule("", chooser=_replayed(choices))
    except ValueError:
        pass
    raise ValueError(
        f"no schedule {text!r}: lazy, lifo, eager, random:SEED or chosen:CHOICE,CHOICE,..."
    )


def by_chooser(choose: Chooser) -> Schedule:
    """The schedule that `choose` makes, one call at a time."""
    return Schedule("", chooser=choose)


def _replayed(choices: list[int]) -> Chooser:
    rest = iter(choices)
    return lambda count: min(next(rest, 0), count - 1)
