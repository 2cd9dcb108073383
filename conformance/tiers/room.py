"""How many host rows must be free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Room:
    """Host rows of a tier, by id space: `token`, and `state` if there are any.

    `totals` were free at first, `held` are those of backups. `late` were given back with
    copies in flight: the tier may keep them until those are done.
    """

    totals: Mapping[str, int]
    held: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.held = dict.fromkeys(self.totals, 0)
        self.late = dict.fromkeys(self.totals, 0)

    def __str__(self) -> str:
        return ", ".join(f"{free} host rows are free ({name})" for name, free in self.free.items())

    @property
    def free(self) -> dict[str, int]:
        """What is free for sure."""
        return {
            name: total - self.held[name] - self.late[name] for name, total in self.totals.items()
        }

    def has(self, tokens: int, state: int | None) -> bool | None:
        """Whether there is room; None where that depends on what the tier still keeps."""
        wanted = self._wanted(tokens, state)
        if all(self.free[name] >= count for name, count in wanted.items()):
            return True
        most = {name: self.free[name] + self.late[name] for name in wanted}
        return None if all(most[name] >= count for name, count in wanted.items()) else False

    def take(self, tokens: int, state: int | None) -> None:
        for name, count in self._wanted(tokens, state).items():
            self.held[name] += count

    def give_back(self, tokens: int, state: int | None, *, later: bool) -> None:
        for name, count in self._wanted(tokens, state).items():
            self.held[name] -= count
            self.late[name] += count if later else 0

    def settle(self) -> None:
        """Nothing is in flight any more."""
        self.late = dict.fromkeys(self.totals, 0)

    def problem(self, available: Mapping[str, int]) -> str:
        """What is wrong with how many rows a tier says are free; "" where nothing is."""
        for name, free in self.free.items():
            found, most = available.get(name), free + self.late[name]
            if found is None or not free <= found <= most:
                expected = f"{free}" if free == most else f"{free} to {most}"
                return f"{found} host rows are free ({name}), expected {expected}"
        return ""

    def _wanted(self, tokens: int, state: int | None) -> dict[str, int]:
        wanted = {"token": tokens, "state": 0 if state is None else 1}
        return {name: count for name, count in wanted.items() if name in self.totals}
