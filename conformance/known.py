"""A failure that is known, declared with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """A failure that is known: the clause is expected to fail, and the run says so.

    `reason` is a sentence for the reader of the table; `link` a public report, where one
    exists. `witness` is a program in text form that shows the failure; it is run each time,
    and when it no longer fails the run fails and asks for this entry to be deleted.
    Clauses on signatures and declarations need no witness: what they look at is one.
    """

    reason: str
    witness: str | None = None
    link: str | None = None

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError("Known needs a reason, got an empty one")

    def __str__(self) -> str:
        return f"{self.reason} ({self.link})" if self.link else self.reason
