"""Leave out of a failing program every step that it fails without.

Hypothesis shrinks what is drawn; the end of an episode is not drawn, so it stays.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.programs import Refuse, Step

Steps = tuple[Step, ...]


def fewest(steps: Steps, shows: Callable[[Steps], bool]) -> Steps:
    """`steps` without whole requests and then without single steps, while it `shows` the same
    failure at its last step, which stays."""
    *before, last = steps
    return (*_fewest(before, lambda steps: shows((*steps, last))), last)


def fewest_of_all(steps: Steps, shows: Callable[[Steps], bool]) -> Steps:
    """As `fewest`, of a failure that is met after the last step: none has to stay."""
    return tuple(_fewest(list(steps), shows))


def _fewest(before: list[Step], shows: Callable[[Steps], bool]) -> list[Step]:
    requests = dict.fromkeys(name for step in before for name in _requests(step))
    for name in requests:
        without = [step for step in before if name not in _requests(step)]
        if len(without) < len(before) and _still(shows, tuple(without)):
            before = without
    at = len(before)
    while at:
        at -= 1
        if _still(shows, (*before[:at], *before[at + 1 :])):
            del before[at]
            at = len(before)  # what was needed before may not be now
    return before


def _requests(step: Step) -> tuple[str, ...]:
    """The requests that a step names."""
    if isinstance(step, Refuse):
        return _requests(step.call)
    names = [getattr(step, name, None) for name in ("request", "new")]
    return (*(name for name in names if name), *getattr(step, "requests", ()))


def _still(shows: Callable[[Steps], bool], steps: Steps) -> bool:
    try:
        return shows(steps)
    except LookupError:  # a step names what is left out
        return False
