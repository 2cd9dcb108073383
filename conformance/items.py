"""What a pytest item checks, and what the exception that it raised says was found."""

from __future__ import annotations

from typing import Any

import pytest

from conformance import declared
from conformance.journal.records import Failure

ARGUMENTS = ("kv_case", "kv_class")
"""The arguments by which a check of the suite is known."""


def case_of(item: pytest.Item) -> Any:
    """The `Case` or `ClassCase` that an item checks; None for any other test."""
    found = next((_params(item)[name] for name in ARGUMENTS if name in _params(item)), None)
    return found if hasattr(found, "clause") else None


def is_check(item: pytest.Item) -> bool:
    """Whether an item is a check of the suite, be it of nothing that is declared."""
    return any(name in _params(item) for name in ARGUMENTS)


def _params(item: pytest.Item) -> dict[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})


def failures_in(error: BaseException | None) -> list[tuple[str, Failure]]:
    """What was found, and the message that tells it: one for each clause that was broken, or
    for the program that ended its process or met the end of its device."""
    found: list[tuple[str, Failure]] = []
    for violation in declared.violations_in(error):
        shown = violation.finding
        program = (shown.replay, shown.what) if shown is not None else ("", "")
        found.append((str(violation), Failure(violation.clause, *program)))
    return found + [(str(error), failure) for failure in getattr(error, "failures", ())]
