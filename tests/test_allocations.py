"""Drawn allocations: every program is legal, and every hard situation is among them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from drawn_programs import ALLOCATORS, drawn, seeded
from hypothesis import find, settings
from id_lives import Moment, moments, problem

from conformance import Allocator, Pool, scenarios
from conformance.geometry import Geometry, geometries
from conformance.programs import (
    BEGIN_GROUP,
    CLEAR,
    COMPACT,
    END_GROUP,
    SCRIBBLE_IDS,
    Extend,
    Free,
    Refuse,
    Resume,
    Retract,
    Share,
    Slide,
    parse_program,
)
from conformance.runner import run
from conformance.troubles import Trouble
from reference_pools.allocators import PagedAllocator, TokenAllocator
from reference_pools.declarations import make_hybrid, make_state_slots, make_token

COUNT = {"window-ids": 1000, "virtual-ids": 300}
"""How many programs are drawn; 100 for the allocators that are not named."""
Life = tuple[Geometry, tuple[Moment, ...]]
Situation = Callable[[Life], bool]


@cache
def lives(allocator: str) -> tuple[Life, ...]:
    declared, count = ALLOCATORS[allocator], COUNT.get(allocator, 100)
    found = drawn(allocator, scenarios.allocations, count)
    assert len(found) == count
    return tuple(
        (geometry, tuple(moments(declared, geometry, program))) for geometry, program in found
    )


def share(allocator: str, holds: Situation) -> float:
    """In how many of the drawn lives a situation occurs, 1.0 being all."""
    return sum(map(holds, lives(allocator))) / len(lives(allocator))


# -- situations ---------------------------------------------------------------------------


def at_some_step(holds: Callable[[Moment], bool]) -> Situation:
    return lambda life: any(map(holds, life[1]))


def got(moment: Moment) -> int:
    """How many tokens this step gives a request, 0 where it gives none."""
    return moment.extends[1] if moment.extends and moment.fits(*moment.extends) else 0


def grows_out_of_a_partial_page(moment: Moment) -> bool:
    held = moment.tokens.get(moment.step.request, 0) if isinstance(moment.step, Extend) else 0
    return got(moment) > 0 and held % moment.page > 0


def retracts_a_partial_page(moment: Moment) -> bool:
    is_retract = isinstance(moment.step, Retract)
    return is_retract and moment.tokens.get(moment.step.request, 0) % moment.page > 0


def reaches_length(unit: str, off: int) -> Situation:
    """A multiple of the page or of the chunk, and so many more, before the end."""

    def holds(life: Life) -> bool:
        size = getattr(life[0], unit)
        lengths = [
            moment.tokens.get(moment.step.request, 0) + got(moment) - off
            for moment in life[1][:-1]
            if isinstance(moment.step, Extend | Resume) and got(moment)
        ]
        return size > 1 and any(n >= size and n % size == 0 for n in lengths)

    return holds


def asks_for_more_than_is_free(moment: Moment) -> bool:
    step = moment.step
    is_extend = isinstance(step, Extend) and step.tokens <= moment.size
    return is_extend and bool(moment.pages) and not moment.fits(step.request, step.tokens)


def asks_for_more_than_there_is(moment: Moment) -> bool:
    return isinstance(moment.step, Extend) and moment.step.tokens > moment.size


def every_page_is_owned(life: Life) -> bool:
    """Before the end, where one request gets everything."""
    return any(len(moment.owners) == moment.size // moment.page for moment in life[1][:-1])


def resumes_beside_another_copy(moment: Moment) -> bool:
    return isinstance(moment.step, Resume) and len(moment.copies) > 1


def clears_in_a_group(moment: Moment) -> bool:
    return moment.step == CLEAR and moment.in_group


def sharers_end(life: Life, *, owner_first: bool) -> bool:
    """Whether one of two that share pages is freed while the other lives on: the one that
    had them first, or the one that they were shared with."""
    pairs: list[tuple[str, str]] = []
    for moment in life[1]:
        step, pages = moment.step, moment.pages
        if isinstance(step, Share) and moment.tokens.get(step.request, 0) >= step.tokens:
            pairs.append((step.request, step.new))
        if isinstance(step, Free) and not step.start:
            for owner, sharer in pairs:
                first, second = (owner, sharer) if owner_first else (sharer, owner)
                if first in step.requests and {*pages.get(first, ())} & {*pages.get(second, ())}:
                    return True
    return False


def slides_within_a_page(moment: Moment) -> bool:
    step = moment.step
    if not isinstance(step, Slide) or moment.tokens.get(step.request, 0) < step.end:
        return False
    return step.start % moment.page > 0 or step.end % moment.page > 0


def hands_pages_on_before_their_first_owner_resumes(life: Life) -> bool:
    retracted: dict[str, int] = {}
    last_taken = -1
    for moment in life[1]:
        step = moment.step
        if isinstance(step, Retract):
            retracted[step.copy] = moment.number
        if isinstance(step, Resume) and got(moment) and last_taken > retracted[step.copy]:
            return True
        if got(moment) and moment.extends and moment.lacks(*moment.extends) > 0:
            last_taken = moment.number
    return False


SITUATIONS: dict[str, dict[str, Situation]] = {
    "window-ids": {
        "more than is free": at_some_step(asks_for_more_than_is_free),
        "more than there is": at_some_step(asks_for_more_than_there_is),
        "every page is owned": every_page_is_owned,
        "a partial page grows": at_some_step(grows_out_of_a_partial_page),
        "a partial page is retracted": at_some_step(retracts_a_partial_page),
        **{
            f"{unit}{off:+d}": reaches_length(unit, off)
            for unit in ("page_size", "chunk_tokens")
            for off in (-1, 0, 1)
        },
        "a resume beside another copy": at_some_step(resumes_beside_another_copy),
        "pages are handed on": hands_pages_on_before_their_first_owner_resumes,
        "clear in a free group": at_some_step(clears_in_a_group),
        "ids overwritten in a free group": at_some_step(
            lambda moment: moment.in_group and moment.step == SCRIBBLE_IDS
        ),
        "the owner of shared pages goes first": lambda life: sharers_end(life, owner_first=True),
        "the sharer goes first": lambda life: sharers_end(life, owner_first=False),
        "part of a page slides": at_some_step(slides_within_a_page),
    },
    "virtual-ids": {
        "rows move below a request": at_some_step(lambda m: m.step == COMPACT and bool(m.tokens)),
        "rows move beside a copy": at_some_step(lambda m: m.step == COMPACT and bool(m.copies)),
    },
}


@pytest.mark.parametrize(
    ("allocator", "situation"), [(name, of) for name, every in SITUATIONS.items() for of in every]
)
def test_situation_is_reached(allocator: str, situation: str) -> None:
    assert share(allocator, SITUATIONS[allocator][situation]) >= 0.01


# -- every drawn life is legal ------------------------------------------------------------


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_every_life_is_legal(allocator: str) -> None:
    for _, steps in lives(allocator):
        told = [problem(ALLOCATORS[allocator], moment) for moment in steps]
        assert not any(told), (told, "; ".join(str(moment.step) for moment in steps))


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_every_life_ends_with_everything_in_one_hand(allocator: str) -> None:
    for _, steps in lives(allocator):
        last = steps[-1]
        assert isinstance(last.step, Extend)
        assert (last.step.tokens, last.tokens) == (last.size, {})
        assert last.fits(last.step.request, last.size)


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_lives_use_only_what_the_allocator_offers(allocator: str) -> None:
    steps = [moment.step for _, found in lives(allocator) for moment in found]
    used = {
        "sharing": any(isinstance(step, Share) for step in steps),
        "window": any(isinstance(step, Slide) for step in steps),
        "offload": any(isinstance(step, Retract) for step in steps),
        "groups": BEGIN_GROUP in steps,
        "virtual": COMPACT in steps,
    }
    offers = ALLOCATORS[allocator].offers
    assert used == {capability: capability in offers for capability in used}


def test_free_groups_are_closed() -> None:
    for _, steps in lives("window-ids"):
        kinds = [m.step for m in steps if m.step in (BEGIN_GROUP, END_GROUP, CLEAR)]
        begun = kinds.count(BEGIN_GROUP)
        assert begun == kinds.count(END_GROUP) + sum(map(clears_in_a_group, steps))
        assert not steps[-1].in_group


def one_page(name: str) -> Allocator:
    """Before a pool of one page, or of one state row."""
    sizes = {"page_sizes": [4 if name == "paged" else 1], "pages": [1], "layers": [5]}
    token = Pool("p", make_token, kind="token", **sizes)
    if name == "slots":
        hybrid = Pool("p", make_hybrid, kind="hybrid", state_sizes=[1])
        return Allocator("slots", make_state_slots, hybrid, kind="slots")
    return Allocator(name, PagedAllocator if name == "paged" else TokenAllocator, token)


@pytest.mark.parametrize("name", ["paged", "token", "slots"])
def test_lives_in_a_single_page_are_legal(name: str) -> None:
    allocator = one_page(name)
    for seed in range(50):
        geometry, program = seeded(allocator, scenarios.allocations, seed)
        every = list(moments(allocator, geometry, program))
        assert every[0].size == every[0].page
        assert not any(problem(allocator, moment) for moment in every)


def test_allocations_shrink_to_requests_of_one_id() -> None:
    """All of them go, and the last one gets everything."""
    ids = ALLOCATORS["token-ids"]
    strategy = scenarios.programs(ids.pool, "cpu", scenarios.allocations, front=ids)
    few = settings(derandomize=True, database=None, max_examples=50)
    geometry, program = find(strategy, lambda _: True, settings=few)
    *small, last = [step.tokens for step in program if isinstance(step, Extend)]
    assert (set(small), last) == ({1}, geometry.size)
    assert {type(step) for step in program} <= {Extend, Retract, Resume, Free}
    assert len(program.steps) <= 12


# -- illegal frees ------------------------------------------------------------------------


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize(
    "scenario", [scenarios.double_free, scenarios.duplicate_free, scenarios.foreign_free]
)
def test_one_free_is_illegal_and_the_rest_is_not(
    allocator: str, scenario: scenarios.Scenario
) -> None:
    for seed in range(30):
        geometry, program = seeded(allocator, scenario, seed)
        refused = [step for step in program if isinstance(step, Refuse)]
        every = list(moments(ALLOCATORS[allocator], geometry, program))
        told = {str(m.step) for m in every if problem(ALLOCATORS[allocator], m)}
        assert len(refused) == 1
        assert {str(step) for step in refused} <= told
        assert all(text.startswith(("refuse ", "claim bad ")) for text in told)


# -- the checker itself -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allocator", "text", "told"),
    [
        ("paged-ids", "extend r0 at 5", "not a number of tokens"),
        ("paged-ids", "extend r0 by 10; free r0[3:]", "not from the begin of a page"),
        ("paged-ids", "extend r0 by 10; free r0,r0", "twice"),
        ("paged-ids", "extend r0 by 10; share r0[:3] as r1", "part of a page"),
        ("paged-ids", "extend r0 by 10; share r0[:0] as r1", "part of a page"),
        ("paged-ids", "extend r0 by 5; extend r1 by 5; share r0[:5] as r1", "is alive"),
        ("paged-ids", "extend r0 by 10; slide r0[0:5]", "no window"),
        ("window-ids", "extend r0 by 10; slide r0[5:5]", "nothing slides"),
        ("window-ids", "extend r0 by 10; share r0[:5] as r1; slide r0[0:5]", "a shared page"),
        ("window-ids", "extend r0 by 10; share r0[:5] as r1; slide r1[3:5]", "a shared page"),
        ("paged-ids", "begin group; begin group", "neither free nor allocation, in a free group"),
        ("paged-ids", "end group", "no group is open"),
        ("paged-ids", "begin group; clear; end group", "no group is open"),
        ("paged-ids", "compact", "has no virtual"),
        ("state-slots", "extend r0 by 1; retract r0 as c0", "does not offload"),
        ("paged-ids", "extend r0 by 1; retract r0 as c0; extend r0 by 1; resume r0 from c0", "ali"),
        ("host-rows", "extend r0 by 3", "not a number of tokens"),
        ("paged-ids", "write r0 at 5", "no step of an allocator"),
    ],
)
def test_illegal_allocations_are_told(allocator: str, text: str, told: str) -> None:
    declared = ALLOCATORS[allocator]
    geometry = geometries(declared.pool)[0]
    every = moments(declared, geometry, parse_program(text))
    *legal, illegal = [problem(declared, moment) for moment in every]
    assert not any(legal)
    assert told in illegal


def test_what_does_not_fit_is_followed() -> None:
    """Pages are counted as an allocator of five pages of five must count them."""
    text = (
        "extend r0 by 6; share r0[:5] as r1; extend r2 by 15; extend r2 by 1; "
        "free r0; extend r3 by 6; retract r2 as c0; extend r3 by 6; resume r4 from c0; clear"
    )
    declared = ALLOCATORS["paged-ids"]
    every = list(moments(declared, geometries(declared.pool)[0], parse_program(text)))
    fits = [m.fits(*m.extends) for m in every if m.extends]
    assert fits == [True, True, False, False, True, False]
    assert every[-1].tokens == {"r1": 5, "r3": 6}


# -- steps whose request got less than it asked for ---------------------------------------


@pytest.mark.parametrize(
    ("allocator", "text"),
    [
        ("paged-ids", "extend r0 by 3; extend r1 by 20; extend r0 by 12; share r0[:15] as r2"),
        ("window-ids", "extend r0 by 3; extend r1 by 15; extend r0 by 12; slide r0[0:5]"),
        ("window-ids", "extend r0 by 1; slide r0[0:1]; extend r1 by 20; extend r1 by 15"),
    ],
)
def test_part_of_a_page_is_neither_shared_nor_slid(allocator: str, text: str) -> None:
    """The request has fewer tokens than the step names, for there was no room for them; once
    its last page had two owners it could not grow any more."""
    declared, troubles = ALLOCATORS[allocator], list[Trouble]()
    program = parse_program(f"{text}; extend r0 by 1")
    run(declared.pool, geometries(declared.pool)[0], program, troubles.append, declared)
    assert troubles == []
