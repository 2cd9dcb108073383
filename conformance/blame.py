"""Which clause a failing program of an allocator breaks.

A step is blamed on what it does: the end of a free group, a free of shared ids. A fault of
every free shows there too. So the program is tried again without that feature: if it still
fails, the fault is a plainer one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from conformance.allocator import Allocator
from conformance.fewest import Steps, fewest
from conformance.first import first_trouble
from conformance.geometry import Geometry
from conformance.programs import (
    BEGIN_GROUP,
    CLEAR,
    END_GROUP,
    SCRIBBLE_IDS,
    Claim,
    Extend,
    Free,
    Program,
    Resume,
    Retract,
    Share,
    Slide,
    Step,
)
from conformance.troubles import Trouble


def explain(
    allocator: Allocator,
    geometry: Geometry,
    program: Program,
    trouble: Trouble,
    binds: Callable[[str], bool],
) -> tuple[str, Program, Trouble]:
    """The clause that `trouble`, met in `program`, breaks, and the plainest program found that
    shows it. `binds` says which clauses this allocator is held to."""
    steps, clause = program.steps[: trouble.step + 1], clause_of(trouble)
    if not binds(clause):
        return clause, program, trouble
    while (feature := _feature(clause, steps)) is not None:
        named, variants = feature
        fewer = [_with_names(variant) for variant in variants]
        troubles = [_first_trouble(allocator, geometry, without, binds) for without in fewer]
        at = next((at for at, found in enumerate(troubles) if found is not None), None)
        if at is None:
            clause = named
            break
        found = troubles[at]
        assert found is not None
        steps, trouble, clause = fewer[at][: found.step + 1], found, clause_of(found)

    def same(steps: Steps) -> Trouble | None:
        found = _first_trouble(allocator, geometry, steps, binds)
        is_last = found is not None and found.step == len(steps) - 1
        return found if found and is_last and clause_of(found) == clause_of(trouble) else None

    if not allocator.isolated:
        steps = fewest(steps, lambda steps: same(steps) is not None)
        trouble = same(steps) or trouble
    return clause, Program(steps), trouble


def clause_of(trouble: Trouble) -> str:
    """A reload through the allocator that goes wrong has not reached the pool as it should."""
    return trouble.clause if trouble.kind == "clause" else "allocator_forwards_the_verbs"


def _feature(clause: str, steps: Steps) -> tuple[str, list[Steps]] | None:
    """The feature of `steps` on which `clause` may be blamed wrongly: the clause that is
    broken if it takes the feature, and the steps without it."""
    if SCRIBBLE_IDS in steps:
        return "ids_keep_their_values", [_drop(steps, SCRIBBLE_IDS)]
    if clause == "clear_resets_everything" and CLEAR in steps:
        return clause, [_freed_one_by_one(steps)]
    if BEGIN_GROUP in steps:  # whatever it is: what an open group loses does not show yet
        return clause, [_drop(steps, BEGIN_GROUP, END_GROUP)]
    shares = [step for step in steps if isinstance(step, Share)]
    if clause == "shared_ids_outlive_one_owner" and shares:
        return clause, [_merged(steps), _drop(steps, *shares)]
    slides = [step for step in steps if isinstance(step, Slide)]
    if clause == "mapping_dies_with_its_page" and slides:
        of_last = [slide for slide in slides if slide.request in _freed(steps[-1])]
        return clause, [_drop(steps, *of_last), _drop(steps, *slides)]
    return None


def _drop(steps: Steps, *dropped: Step) -> Steps:
    return tuple(step for step in steps if step not in dropped)


def _freed(step: Step) -> tuple[str, ...]:
    return step.requests if isinstance(step, Free) else (getattr(step, "request", ""),)


def _with_names(steps: Steps) -> Steps:
    """`steps` without what they say of requests and copies that no step has made."""
    made, kept = set[str](), list[Step]()
    for step in steps:
        match step:
            case Extend(request) | Claim(request):
                made.add(request)
            case Share(request, new) if request in made:
                made.add(new)
            case Retract(request, copy) if request in made:
                made.add(f"copy {copy}")
            case Resume(request, copy) if f"copy {copy}" in made:
                made.add(request)
            case Free(requests) if made.intersection(requests):
                step = replace(step, requests=tuple(r for r in requests if r in made))
            case Slide(request) if request in made:
                pass
            case Share() | Retract() | Resume() | Free() | Slide():
                continue
        kept.append(step)
    return tuple(kept)


def _merged(steps: Steps) -> Steps:
    """Who shares ids of a request is that request, which goes when the last of them goes, or
    at the end."""
    names, alive, merged = dict[str, str](), dict[str, set[str]](), list[Step]()
    for step in steps:
        match step:
            case Share(request, new):
                names[new] = names.get(request, request)
                alive.setdefault(names[new], {request}).add(new)
            case Extend(request) | Slide(request):
                merged.append(replace(step, request=names.get(request, request)))
            case Retract(request) | Free((request,)):
                name = names.get(request, request)
                others = alive.get(name, set())
                others.discard(request)
                if not others or step is steps[-1]:
                    as_one = {"requests": (name,)} if isinstance(step, Free) else {"request": name}
                    merged.append(replace(step, **as_one))
            case _:
                merged.append(step)
    return tuple(merged)


def _freed_one_by_one(steps: Steps) -> Steps:
    """Instead of each clear, every request frees its ids, and an open free group ends."""
    alive, is_open, freed = dict[str, None](), False, list[Step]()
    for step in steps:
        match step:
            case Extend(request) | Share(new=request) | Resume(request):
                alive[request] = None
            case Retract(request) | Free((request,), 0):
                alive.pop(request, None)
        if step == CLEAR:
            freed += [Free((request,)) for request in alive]
            freed += [END_GROUP] if is_open else []
            alive, is_open = {}, False
        else:
            freed.append(step)
            is_open = step == BEGIN_GROUP or (is_open and step != END_GROUP)
    return tuple(freed)


def _first_trouble(
    allocator: Allocator, geometry: Geometry, steps: Steps, binds: Callable[[str], bool]
) -> Trouble | None:
    return first_trouble(allocator, geometry, Program(steps), lambda t: binds(clause_of(t)))
