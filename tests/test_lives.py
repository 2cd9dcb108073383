"""Drawn request lives: every program is legal, and every hard situation is among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest
from drawn_programs import POOLS, drawn, seeded
from hypothesis import find, settings
from request_lives import Moment, Saved, moments, problem

from conformance import Pool, scenarios
from conformance.geometry import Geometry, geometries
from conformance.programs import Extend, Free, Move, Resume, Retract, Write, parse_program
from conformance.step_text import Rows
from reference_pools.declarations import make_token

COUNT = 1000
Life = tuple[Geometry, tuple[Moment, ...]]

each_pool = pytest.mark.parametrize("pool", ["token", "dsa", "hybrid"])


@cache
def lives(pool: str) -> tuple[Life, ...]:
    found = drawn(pool, scenarios.lives, COUNT)
    return tuple((geometry, tuple(moments(program))) for geometry, program in found)


def share(pool: str, holds: Callable[[Life], bool]) -> float:
    """In how many of the drawn lives a situation occurs, 1.0 being all."""
    return sum(map(holds, lives(pool))) / len(lives(pool))


# -- the steps that situations are made of --------------------------------------------------


def resumes(life: Life) -> Iterator[tuple[Moment, Saved, Rows]]:
    """Each resume: the copy, and the rows that it is reloaded into."""
    for moment in life[1]:
        if isinstance(moment.step, Resume):
            assert moment.step.rows is not None
            yield moment, moment.copies[moment.step.copy], moment.step.rows


def takes(life: Life) -> Iterator[tuple[Moment, str, Rows]]:
    """Each step by which a request gets rows; not the writes that only fill the pool, whose
    request is gone at once."""
    for at, moment in enumerate(life[1]):
        match moment.step:
            case Write(request, rows):
                if life[1][at + 1].step != Free((request,)):
                    yield moment, request, rows
            case Extend(request, rows) | Resume(request, _, rows):
                yield moment, request, rows or ()


def slots(geometry: Geometry, rows: Rows) -> dict[int, set[int]]:
    """The slots that `rows` have in each page."""
    found: dict[int, set[int]] = {}
    for row in rows:
        found.setdefault(row // geometry.page_size, set()).add(row % geometry.page_size)
    return found


def handed_on(life: Life) -> Iterator[tuple[Moment, str, set[int], set[int]]]:
    """Each page that a request gets of which another that was retracted had a part: the copy
    of the old owner, the slots that it had, and those of the new owner."""
    geometry = life[0]
    for moment, request, rows in takes(life):
        new = slots(geometry, rows)
        for name, copy in moment.copies.items():
            old = slots(geometry, copy.rows)
            if copy.retracted and copy.request != request:
                for page in new.keys() & old.keys():
                    yield moment, name, old[page], new[page]


# -- situations -------------------------------------------------------------------------------


def reloads_into_overwritten_rows(life: Life) -> bool:
    """Whether all rows of some resume were given other bytes since its offload."""
    last_written: dict[int, int] = {}
    for moment in life[1]:
        if isinstance(moment.step, Resume) and moment.step.rows:
            made = moment.copies[moment.step.copy].made
            if all(last_written.get(row, -1) > made for row in moment.step.rows):
                return True
        last_written |= dict.fromkeys(moment.written(life[0]), moment.number)
    return False


def reloads_into_an_overwritten_state(life: Life) -> bool:
    last_written: dict[int | None, int] = {}
    for moment in life[1]:
        match moment.step:
            case Resume(_, copy, _, state):
                if state and last_written.get(state, -1) > moment.copies[copy].made:
                    return True
                last_written[state] = moment.number
            case Write(_, _, state):
                last_written[state] = moment.number
    return False


def page_has_old_and_new_owner(life: Life) -> bool:
    """Neither of whom had all of it."""
    page = life[0].page_size
    return any(len(old) < page and len(new) < page for _, _, old, new in handed_on(life))


def page_is_handed_on_before_its_first_owner_resumes(life: Life) -> bool:
    resumed = {moment.step.copy: moment.number for moment, *_ in resumes(life)}  # type: ignore[union-attr]
    return any(resumed.get(copy, -1) > moment.number for moment, copy, _, _ in handed_on(life))


def last_page_is_partial(life: Life) -> bool:
    return any(len(rows) % life[0].page_size for _, _, rows in resumes(life))


def resumes_length(unit: str, off: int) -> Callable[[Life], bool]:
    """A multiple of the page or of the chunk, and so many more."""

    def holds(life: Life) -> bool:
        size = getattr(life[0], unit)
        lengths = [len(rows) - off for _, _, rows in resumes(life)]
        return size > 1 and any(n >= size and n % size == 0 for n in lengths)

    return holds


def pool_is_exhausted(life: Life) -> bool:
    """Requests that live on own a part of every block."""
    geometry = life[0]
    block = geometry.page_size if geometry.attention == "dsa" else 1
    return any(
        len({row // block for owned in [*moment.rows.values(), rows] for row in owned})
        == geometry.size // block
        for moment, _, rows in takes(life)
    )


def resumes_while_another_is_retracted(life: Life) -> bool:
    return any(
        copy.retracted and copy is not resumed
        for moment, resumed, _ in resumes(life)
        for copy in moment.copies.values()
    )


def moves_across_a_page_border(life: Life) -> bool:
    geometry, steps = life
    return geometry.page_size > 1 and any(
        moment.rows[step.request][source] // geometry.page_size
        != moment.rows[step.request][target] // geometry.page_size
        for moment in steps
        if isinstance(step := moment.step, Move)
        for source, target in zip(step.sources, step.targets, strict=True)
    )


def two_copies_of_one_request(life: Life) -> bool:
    return any(
        len({copy.request for copy in moment.copies.values()}) < len(moment.copies)
        for moment in life[1]
    )


def moves_between_offload_and_reload(life: Life) -> bool:
    """Within the request of which the copy is."""
    moves = [(m.number, m.step.request) for m in life[1] if isinstance(m.step, Move)]
    return any(
        request == copy.request and number > copy.made
        for moment, copy, _ in resumes(life)
        for number, request in moves
        if number < moment.number
    )


SITUATIONS: dict[str, Callable[[Life], bool]] = {
    "a page has an old and a new owner": page_has_old_and_new_owner,
    "a page is handed on": page_is_handed_on_before_its_first_owner_resumes,
    "the last page is partial": last_page_is_partial,
    **{
        f"{unit}{off:+d}": resumes_length(unit, off)
        for unit in ("page_size", "chunk_tokens")
        for off in (-1, 0, 1)
    },
    "the pool is exhausted": pool_is_exhausted,
    "a resume beside another copy": resumes_while_another_is_retracted,
    "a move across a page border": moves_across_a_page_border,
    "two copies of one request": two_copies_of_one_request,
    "a move before the reload": moves_between_offload_and_reload,
}


@each_pool
def test_nearly_every_life_reloads_into_rows_that_were_overwritten(pool: str) -> None:
    assert share(pool, reloads_into_overwritten_rows) >= 0.99


@each_pool
@pytest.mark.parametrize("situation", SITUATIONS)
def test_situation_is_reached(pool: str, situation: str) -> None:
    assert share(pool, SITUATIONS[situation]) >= 0.01


def test_state_is_reloaded_into_a_row_that_was_overwritten() -> None:
    assert share("hybrid", reloads_into_an_overwritten_state) >= 0.1


# -- every drawn life is legal ----------------------------------------------------------------


@each_pool
def test_every_life_is_legal(pool: str) -> None:
    assert len(lives(pool)) == COUNT
    paged = POOLS[pool].ids == "page"
    for geometry, steps in lives(pool):
        told = [problem(geometry, moment, paged=paged) for moment in steps]
        assert not any(told), (told, "; ".join(str(moment.step) for moment in steps))


@pytest.mark.parametrize("pool", POOLS)
def test_lives_of_every_reference_pool_are_legal(pool: str) -> None:
    paged = POOLS[pool].ids == "page"
    for seed in range(15):
        geometry, program = seeded(pool, scenarios.lives, seed)
        assert not any(problem(geometry, moment, paged=paged) for moment in moments(program))


@each_pool
def test_every_life_resumes_a_request(pool: str) -> None:
    for _, steps in lives(pool):
        assert any(isinstance(moment.step, Resume) for moment in steps)


@pytest.mark.parametrize(
    ("sizes", "rows"), [((1, 1), 1), ((1, 3), 3), ((4, 1), 4)], ids=["a row", "rows", "a page"]
)
def test_lives_in_hardly_any_rows_are_legal(sizes: tuple[int, int], rows: int) -> None:
    page, pages = sizes
    pool = Pool("p", make_token, kind="token", page_sizes=[page], pages=[pages], layers=[5])
    assert geometries(pool)[0].size == rows
    for seed in range(50):
        geometry, program = seeded(pool, scenarios.lives, seed)
        assert not any(problem(geometry, moment, paged=False) for moment in moments(program))


def test_lives_use_no_verb_that_the_pool_lacks() -> None:
    pool = Pool("p", make_token, kind="token", lacks=["move"])
    for seed in range(50):
        _, program = seeded(pool, scenarios.lives, seed)
        assert not any(isinstance(step, Move) for step in program)


def test_lives_shrink_to_one_token_that_is_retracted_and_resumed() -> None:
    """Another request fills the pool in between."""
    strategy = scenarios.programs(POOLS["token"], "cpu", scenarios.lives)
    few = settings(derandomize=True, database=None, max_examples=50)
    geometry, program = find(strategy, lambda _: True, settings=few)
    last = geometry.token_rows - 1
    kinds = [type(step) for step in program]
    assert kinds == [Write, Retract, Write, Free, Resume]
    assert str(program).startswith("write r0 at 5; retract r0 as c0; write r1 at ")
    assert str(program).endswith("free r1; resume r0 from c0 at 6")
    assert {*range(5, last + 1)} == set(program.steps[2].rows)  # type: ignore[union-attr]


# -- the checker itself -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pool", "text", "told"),
    [
        ("token", "write r0 at 5; write r0 at 6", "r0 is alive"),
        ("token", "write r0 at 5; write r1 at 5", "have an owner"),
        ("token", "write r0 at 4", "no rows"),
        ("token", "write r0 at 30", "no rows"),
        ("token", "write r0 at 5,5", "twice the same"),
        ("token", "extend r0 at 5", "not alive"),
        ("token", "write r0 at 5; extend r0 at 5", "have an owner"),
        ("token", "write r0 at 5; retract r0 as c0; retract r0 as c1", "not alive"),
        ("token", "write r0 at 5; offload r0 as c0; resume r1 from c0 at 5", "have an owner"),
        ("token", "write r0 at 5; offload r0 as c0; resume r0 from c0 at 6", "is alive"),
        ("token", "write r0 at 5; retract r0 as c0; resume r0 from c0 at 6..7", "does not fit"),
        ("token", "write r0 at 5; retract r0 as c0; resume r0 from c1 at 6", "c1 is no copy"),
        ("token", "write r0 at 5..6; move r0[0] to [0]", "not disjoint"),
        ("token", "write r0 at 5..6; move r0[0] to [2]", "not the request's"),
        ("token", "write r0 at 5; free r0; free r0", "not alive"),
        ("token", "write r0 at 5; zero state 1", "no step of a request's life"),
        ("hybrid", "write r0 at 5 state 3; write r1 at 6 state 3", "state row 3 has an owner"),
        ("hybrid", "write r0 at 5 state 12", "state row 12 does not exist"),
        ("hybrid", "write r0 at 5 state 3; offload r0 as c0", "not its state"),
        ("hybrid", "write r0 at 5 state 3; retract r0 as c0; resume r0 from c0 at 5", "not fit"),
        ("dsa", "write r0 at 6", "in its middle"),
        ("dsa", "write r0 at 5..6,10", "does not follow 6"),
        ("dsa", "write r0 at 5..6; write r1 at 7", "in its middle"),
        ("dsa", "write r0 at 5..6; extend r0 at 8", "does not follow 6"),
        ("dsa", "write r0 at 10..13; extend r0 at 14,5..6; write r1 at 5", "have an owner"),
    ],
)
def test_illegal_life_is_told(pool: str, text: str, told: str) -> None:
    geometry = geometries(POOLS[pool])[0]
    paged = POOLS[pool].ids == "page"
    *legal, illegal = [
        problem(geometry, moment, paged=paged) for moment in moments(parse_program(text))
    ]
    assert not any(legal)
    assert told in illegal
