"""Which clause a failing program breaks: the one that is kept when its feature is taken away.

A fault in one clause shows in many programs. So a failing reload is first tried alone,
without the rest of its program, and then without one feature after another: the first
feature without which it passes names the clause. What fails with none of them breaks the
plainest clause there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from conformance.fewest import fewest
from conformance.first import first_trouble
from conformance.geometry import Geometry
from conformance.holdings import Holdings, plain, reload_of
from conformance.pool import Pool
from conformance.programs import (
    OVERWRITE,
    PLAIN,
    Offload,
    Program,
    Refuse,
    Reload,
    Resume,
    Retract,
    Step,
    Write,
)
from conformance.races import race_in
from conformance.step_text import Rows
from conformance.troubles import Trouble

_PLAINEST = {
    "raised": "every_verb_works",
    "payload": "reload_restores_the_same_rows",
    "companion": "companions_travel",
    "state": "state_travels",
}
_ONE_CHUNK = 1 << 20

_Trip = tuple[Geometry, Write, Offload, Reload | None]


def diagnose(pool: Pool, geometry: Geometry, program: Program, trouble: Trouble) -> str:
    """The id of the clause that `trouble`, met in `program`, breaks."""
    if trouble.kind == "clause":
        return trouble.clause
    in_time = replace(geometry, schedule="eager")
    if geometry.schedule and not _shows(trouble, pool, in_time, program):
        return "timing_changes_nothing"

    def fails(trip: _Trip) -> bool:
        geometry, write, offload, reload = trip
        return _shows(trouble, pool, geometry, _program(write, offload, reload))

    trip = (geometry, *_alone(program, trouble.step))
    if not fails(trip):
        return _broken_by_company(pool, geometry, program, trouble)
    for clause, without in _features(pool, trip, trouble.kind):
        if not any(map(fails, without)):
            return clause
    return trouble.clause or _PLAINEST[trouble.kind]


def smallest(
    pool: Pool, geometry: Geometry, program: Program, trouble: Trouble, clause: str
) -> tuple[Program, Trouble]:
    """The failing call alone where that shows the same trouble, else the steps up to it that
    are needed. `clause` is what `diagnose` says of it."""
    if isinstance(program.steps[trouble.step], Offload | Reload | Retract | Resume):
        whole = _alone(program, trouble.step)
        for trip in (*_shorter(pool, whole), whole):
            alone = _program(*trip)
            found = first_trouble(pool, geometry, alone)
            if found and (found.kind, found.clause) == (trouble.kind, trouble.clause):
                return Program(alone.steps[: found.step + 1]), found

    def same(steps: tuple[Step, ...]) -> Trouble | None:
        fewer = Program(steps)
        found = first_trouble(pool, geometry, fewer)
        if found is None or found.step != len(steps) - 1 or found.kind != trouble.kind:
            return None
        return found if diagnose(pool, geometry, fewer, found) == clause else None

    steps = fewest(program.steps[: trouble.step + 1], lambda steps: same(steps) is not None)
    return Program(steps), same(steps) or trouble


def with_race(pool: Pool, geometry: Geometry, program: Program, trouble: Trouble) -> Trouble:
    """`trouble`, and which operations of the pool nothing puts in order, where that is why."""
    race = race_in(lambda: first_trouble(pool, geometry, program))
    return replace(trouble, what=f"{trouble.what}; {race}") if race else trouble


def _shorter(
    pool: Pool, trip: tuple[Write, Offload, Reload | None]
) -> Iterator[tuple[Write, Offload, Reload | None]]:
    """The call for its first token alone, and for its last one where any row may be first."""
    write, offload, reload = trip
    ends = [slice(0, 1)] if pool.ids == "page" else [slice(0, 1), slice(-1, None)]
    for end in ends:
        if len(write.rows) > 1:
            into = None if reload is None else replace(reload, rows=reload.rows[end])
            yield replace(write, rows=write.rows[end]), offload, into


def _shows(trouble: Trouble, pool: Pool, geometry: Geometry, program: Program) -> bool:
    """Whether `program` fails as `trouble` does: by an exception, or by a difference."""
    found = first_trouble(pool, geometry, program)
    return found is not None and (found.kind == "raised") == (trouble.kind == "raised")


def _program(write: Write, offload: Offload, reload: Reload | None) -> Program:
    return Program((write, offload) if reload is None else (write, offload, OVERWRITE, reload))


def _alone(program: Program, at: int) -> tuple[Write, Offload, Reload | None]:
    """The failing call with nothing before it but the write and the offload it needs."""
    step, before = program.steps[at], Holdings.after(program.steps[:at])
    if isinstance(step, Offload | Retract):
        taken = before.taken(step)
        return taken.write, taken.offload, None
    reload = reload_of(step)
    assert reload is not None
    taken = before.copies[reload.copy]
    return taken.write, taken.offload, reload


def _broken_by_company(pool: Pool, geometry: Geometry, program: Program, trouble: Trouble) -> str:
    """The call works alone, so what breaks it is what came before it."""
    steps = program.steps[: trouble.step + 1]
    reload = reload_of(steps[-1])
    if reload is not None:
        earlier = [other for step in steps[:-1] if (other := reload_of(step))]
        if any(other.copy == reload.copy for other in earlier):
            return "reload_can_be_repeated"
        refused = [step.call for step in steps if isinstance(step, Refuse)]
        if any(isinstance(call, Reload) and call.copy == reload.copy for call in refused):
            return "copy_survives_a_refusal"
    parts = [s for s in steps if isinstance(s, Offload) and s.stop is not None]
    is_part = getattr(steps[-1], "copy", None) in [part.copy for part in parts]
    if is_part and not _shows(trouble, pool, geometry, _as_requests(geometry, steps, parts)):
        return "splitting_gives_the_whole"
    if _shows(trouble, pool, geometry, plain(Program(steps))):
        return "copies_are_independent"
    return "resume_restores_the_request"


def _as_requests(geometry: Geometry, steps: tuple[Step, ...], parts: list[Offload]) -> Program:
    """The parts of a request as requests of their own, all alive at once, each in a page of
    its own: as much of each as there is room for. A pool is told of rows, not of requests, so
    only there are they not parts of one."""
    holdings, page = Holdings.after(steps), geometry.page_size
    writes, offloads, reloads = list[Step](), list[Step](), list[Step]()
    reloaded = {step.copy: step for step in steps if isinstance(step, Reload)}
    for part, first in zip(parts, range(page, geometry.token_rows, max(2, page)), strict=False):
        write, offload = holdings.copies[part.copy].write, holdings.copies[part.copy].offload
        start = write.rows[0] % page if write.rows else 0
        rows = tuple(range(first + start, first + page))[: len(write.rows)]
        writes.append(replace(write, request=part.copy, rows=rows))
        offloads.append(replace(offload, request=part.copy))
        if part.copy in reloaded:
            reloads.append(replace(reloaded[part.copy], rows=rows))
    return Program((*writes, *offloads, OVERWRITE, *reloads))


def _features(pool: Pool, trip: _Trip, kind: str) -> Iterator[tuple[str, list[_Trip]]]:
    """Each feature of the trip: the clause it belongs to, and the trip without it, at more
    than one place where a fault may be right at one by coincidence."""
    geometry, write, offload, reload = trip
    rows = write.rows
    target = rows if reload is None else reload.rows
    start = rows[0] % geometry.page_size if rows and pool.ids == "page" else 0

    def at(source: Rows, to: Rows) -> _Trip:
        moved = None if reload is None else replace(reload, rows=to)
        return geometry, replace(write, rows=source), offload, moved

    def aligned(rows: Rows) -> Rows:
        pages = dict.fromkeys(row // geometry.page_size for row in rows)
        slots = range(geometry.page_size)
        return tuple(p * geometry.page_size + s for p in pages for s in slots)[: len(rows)]

    if start:
        low = _run(geometry, 0, len(rows))
        high = _last_run(geometry, 0, len(rows), geometry.page_size)
        yield (
            "runs_may_begin_mid_page",
            [at(aligned(rows), aligned(target)), at(low, low), at(high, high)],
        )
    if kind in ("companion", "state", "outside"):
        return
    if not rows:
        one = (geometry.page_size,)
        yield "empty_set_is_legal", [at(one, one)]
    plain = None if reload is None else replace(reload, form=PLAIN)
    yield "every_index_form_is_accepted", [(geometry, write, replace(offload, form=PLAIN), plain)]
    yield (
        "chunking_changes_nothing",
        [(replace(geometry, chunk_tokens=_ONE_CHUNK), write, offload, reload)],
    )
    block = geometry.page_size if pool.ids == "page" else 1
    length = min(len(rows), geometry.size - block - start)
    if length > 0:
        first, last = _run(geometry, start, length), _last_run(geometry, start, length, block)
        shifts = range(block, min(3 * block, geometry.size - start - length) + 1, block)
        near = [_run(geometry, start + shift, length) for shift in shifts]
        yield "any_rows_in_any_order", [at(first, to) for to in (last, *near)]
    if target != rows:
        yield "reload_restores_other_rows", [at(rows, rows), at(target, target)]


def _run(geometry: Geometry, start: int, length: int) -> Rows:
    first = geometry.page_size + start
    return tuple(range(first, first + length))


def _last_run(geometry: Geometry, start: int, length: int, block: int) -> Rows:
    """The last run of rows that begins at this slot of a block."""
    blocks = -(-(start + length) // block)
    first = geometry.token_rows - blocks * block + start
    return tuple(range(first, first + length))
