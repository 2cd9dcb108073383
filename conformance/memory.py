"""Device memory that transfers need, measured on a simulated device where nothing is late."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from conformance.case import Case
from conformance.copies import LiveCopy
from conformance.geometry import Geometry, geometries
from conformance.programs import OVERWRITE, PLAIN, Offload, Program, Reload, Write
from conformance.runner import Run, new_run
from conformance.step_text import Rows
from conformance.troubles import Trouble
from conformance.violation import Finding

CYCLES = 1000
SHARES = (0.0, 0.3, 0.6, 0.9)
"""How much of what a transfer needs it is given, before it is given all."""


@dataclass(slots=True)
class Bench:
    """A pool with one request in all of its rows, and how much memory its transfers need."""

    run: Run
    rows: Rows
    state: int | None

    @classmethod
    def of(cls, case: Case, geometry: Geometry) -> Bench:
        def on_trouble(trouble: Trouble) -> None:
            raise RuntimeError(f"a transfer fails for another reason: {trouble.what}")

        run = new_run(case.pool, geometry, Program(()), on_trouble)
        bench = cls(run, *_everything(case, geometry))
        run.place("r0", (), bench.rows, bench.state)
        return bench

    def offload(self, tokens: int) -> None:
        """Offload the first tokens of the request as the copy `c0`."""
        self.run.offload("c0", self.rows[:tokens], self._state(tokens), self.run.offload_call)

    def reload(self, tokens: int) -> None:
        call = self.run.reload_call(self.copy.host)
        self.run.reload("c0", self.rows[:tokens], self._state(tokens), call)

    def transfer(self, tokens: int) -> None:
        """Offload and reload the first tokens, and compare nothing."""
        ids = self.run.ids(PLAIN, self.rows[:tokens])
        state = None if self.state is None else self.run.ids(PLAIN, (self.state,))
        self.run.reload_call(self.run.offload_call(ids, state))(ids, state)

    @property
    def copy(self) -> LiveCopy:
        return self.run.copies["c0"]

    def _state(self, tokens: int) -> int | None:
        return self.state if tokens else None


def leaks(bench: Bench) -> str:
    """Memory in use after a thousand offloads and reloads, more than after the first."""
    before = 0
    for cycle in range(CYCLES):
        bench.transfer(min(3, len(bench.rows)))
        if not cycle:
            before = _in_use()
    more = _in_use() - before
    return f"{more} bytes more are in use after {CYCLES} offloads and reloads" if more > 0 else ""


def unbounded(bench: Bench) -> str:
    """A transfer of every token that needs more than twice the memory of one chunk."""
    chunk, every = bench.run.geometry.chunk_tokens, len(bench.rows)
    if every < 4 * chunk:
        return ""
    few, many = (_needed_by_both(bench, tokens) for tokens in (chunk, every))
    ids = 64 * every  # what is looked up of the ids themselves
    for name, one, all_ in zip(("offload", "reload"), few, many, strict=True):
        if all_ > 2 * one + ids:
            return (
                f"{name} of {every} tokens needs {all_} bytes on the device, of {chunk}, one "
                f"chunk, {one}"
            )
    return ""


def _needed_by_both(bench: Bench, tokens: int) -> tuple[int, int]:
    """What an offload and a reload of this many tokens need."""
    return _needed(partial(bench.offload, tokens)), _needed(partial(bench.reload, tokens))


def for_nothing(bench: Bench) -> str:
    """A transfer of no token that allocates as much as a row."""
    row = min(buffer.rows[0].shape[1] for buffer in bench.run.model.actual)
    for name, needed in zip(("offload", "reload"), _needed_by_both(bench, 0), strict=True):
        if needed >= row:
            return f"{name} of no token needs {needed} bytes on the device"
    return ""


def after_out_of_memory(bench: Bench) -> str:
    """What is not as it was after a transfer that ran out of memory, or cannot be repeated."""
    every = len(bench.rows)
    bench.offload(every)
    for verb in (bench.offload, bench.reload):
        needed, before = _needed(partial(verb, every)), _in_use()
        for share in SHARES:
            with _limit(before + int(needed * share)):
                failed = _runs_out(partial(verb, every))
            if failed and (what := _changed(bench, verb is bench.reload, before)):
                return f"after {verb.__name__} ran out of memory, {what}"
        verb(every)
    return ""


def check(case: Case, measure: Callable[[Bench], str]) -> None:
    """Raise the `Violation` of the case's clause where `measure` finds something."""
    geometry = _geometry(case)
    what = measure(Bench.of(case, geometry))
    case.tally.programs += 1
    case.tally.rows += geometry.size
    if what:
        finding = Finding(case.name, geometry, _program(case, geometry), None, what)
        raise finding.violation(case.clause.id, f"test_{case.clause.id}")


def _geometry(case: Case) -> Geometry:
    """The one that is replayed, or that of the most chunks."""
    if case.replay:
        return replace(case.read(case.replay)[0], schedule="eager")
    every = geometries(case.pool, case.device)
    return replace(max(every, key=lambda g: g.size / g.chunk_tokens), schedule="eager")


def _everything(case: Case, geometry: Geometry) -> tuple[Rows, int | None]:
    """Every row that a request may have, and its state row."""
    rows = tuple(range(geometry.page_size, geometry.token_rows))
    return rows, 1 if case.pool.has_state else None


def _program(case: Case, geometry: Geometry) -> Program:
    rows, state = _everything(case, geometry)
    write, offload = Write("r0", rows, state), Offload("r0", "c0", state)
    return Program((write, offload, OVERWRITE, Reload("c0", rows, state)))


def _changed(bench: Bench, is_reload: bool, before: int) -> str:
    """What a failed transfer has changed; its own rows are nobody's after a failed reload."""
    model = bench.run.model
    cells = model.cells(bench.rows, bench.state) if is_reload else None
    while (found := model.first_difference(cells)) is not None:
        if not found.inside:
            return model.describe(found)
        model.adopt(found.buffer)
    gc.collect()  # of the frames that the error came through
    if more := _in_use() - before:
        return f"{more} bytes more are in use"
    return bench.copy.changes("in it") or ""


def _runs_out(transfer: Callable[[], None]) -> bool:
    try:
        transfer()
    except RuntimeError as error:
        # Not only torch.OutOfMemoryError: an engine may wrap it.
        if "memory" not in str(error):
            raise
        return True
    return False


def _needed(transfer: Callable[[], None]) -> int:
    """The most bytes in use during a transfer, less those before it."""
    from conformance import simdevice

    simdevice.reset_peak_memory_stats()
    before = _in_use()
    transfer()
    return simdevice.max_memory_allocated() - before


def _in_use() -> int:
    from conformance import simdevice

    return simdevice.memory_allocated()


@contextmanager
def _limit(nbytes: int) -> Iterator[None]:
    from conformance import simdevice

    simdevice.limit_memory(nbytes)
    try:
        yield
    finally:
        simdevice.limit_memory(None)
