"""Run a program on a pool beside the model, and say what broke first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from conformance.allocator import Allocator
from conformance.build import adapter_of, build
from conformance.calls import Verb, attempt, ids_of, outcome, waiting
from conformance.cells import Cells
from conformance.copies import LiveCopy
from conformance.front import Front
from conformance.geometry import Geometry
from conformance.host_tier import HostTier
from conformance.isolation import Announce, unheard
from conformance.model import Model
from conformance.pool import Pool
from conformance.programs import (
    CLOSE,
    OVERWRITE,
    PLAIN,
    Bare,
    Claim,
    CopyState,
    Drop,
    Extend,
    Foreign,
    Form,
    Free,
    Move,
    Offload,
    Program,
    Refuse,
    Reload,
    Resume,
    Retract,
    Scribble,
    Step,
    TierStep,
    Write,
    ZeroState,
)
from conformance.refusals import REFUSALS, why_illegal
from conformance.step_text import Rows
from conformance.tiers.front import TierFront
from conformance.timing import Timing, timing_of
from conformance.troubles import OnTrouble, StopProgram, Tally, Trouble, told


def run(
    pool: Pool,
    geometry: Geometry,
    program: Program,
    on_trouble: OnTrouble,
    front: Allocator | HostTier | None = None,
    announce: Announce = unheard,
) -> Tally:
    """Run `program` on a new pool, with a new allocator or host tier where one is given, and
    compare every row after each step that may change one.

    Each trouble goes to `on_trouble`, which decides whether to go on. `announce` hears of
    each step before it is run.
    """
    run = new_run(pool, geometry, program, on_trouble, announce)
    if isinstance(front, Allocator):
        run.front = Front.before(front, run)
    elif front is not None:
        run.front = TierFront.before(front, run)
    return run.run()


def new_run(
    pool: Pool,
    geometry: Geometry,
    program: Program,
    on_trouble: OnTrouble,
    announce: Announce = unheard,
) -> Run:
    """A new pool beside its model, before the first step."""
    timing = timing_of(geometry.device, geometry.schedule)
    made, found = build(pool, geometry)
    inventory, paged = timing.inventory(found), pool.ids == "page"
    model = Model(inventory.buffers, geometry.page_size, paged, settle=timing.settle)
    return Run(
        pool, geometry, program, on_trouble, announce, made, model, inventory.storages, timing
    )


@dataclass(slots=True)
class Run:
    """One run of one program: the pool, the model, and what is alive.

    `placed` has the rows of each request, `states` its state row.
    """

    pool: Pool
    geometry: Geometry
    program: Program
    on_trouble: OnTrouble
    announce: Announce
    made: Any
    model: Model
    owned: frozenset[int]
    timing: Timing
    front: Front | TierFront | None = None
    step: int = 0
    tally: Tally = field(default_factory=lambda: Tally(programs=1))
    copies: dict[str, LiveCopy] = field(default_factory=dict)
    placed: dict[str, Rows] = field(default_factory=dict)
    states: dict[str, int | None] = field(default_factory=dict)

    def run(self) -> Tally:
        try:
            for number, step in enumerate(self.program):
                self.step = number
                self.announce(number, "every_verb_works")
                try:
                    self._do(step) if self.front is None else self.front.do(step)
                except KeyError as name:
                    what = f"program: {str(step)!r} names {name}, which is not there then"
                    raise LookupError(what) from None
            self._check_copies()
            if self.front is not None:
                self.front.finish()
        except StopProgram:
            pass
        return self.tally

    def _do(self, step: Step) -> None:
        match step:
            case Write(request, rows, state):
                self.place(request, (), rows, state)
            case Extend(request, rows) if rows is not None:
                held = self.placed.get(request, ())
                self.place(request, held, rows, self.states.get(request))
            case Claim(request, rows):
                self.placed[request] = rows
            case Offload():
                rows = self.placed[step.request][step.start : step.stop]
                self.offload(step.copy, rows, step.state, self.offload_call, step.form)
            case Reload():
                call = self.reload_call(self.copies[step.copy].host)
                self.reload(step.copy, step.rows, step.state, call, step.form)
            case Retract(request, copy):
                rows, state = self.placed.pop(request), self.states.pop(request)
                self.offload(copy, rows, state, self.offload_call)
            case Resume(request, copy, rows, state) if rows is not None:
                self.reload(copy, rows, state, self.reload_call(self.copies[copy].host))
                self.placed[request], self.states[request] = rows, state
            case Free(requests, start):
                for request in requests:
                    self.placed[request] = self.placed[request][:start]
            case Move():
                self._move(step)
            case CopyState(source, target):
                self._change_state(adapter_of(self.pool).copy_state, source, target)
            case ZeroState(source):
                self._change_state(adapter_of(self.pool).zero_state, source)
            case Scribble(name):
                self.copies.pop(name).scribble()
                self.compare("copy_is_its_own_memory")
            case Foreign(name, tokens):
                self.copies[name] = self._foreign(name, tokens)
            case Refuse(call):
                self._refuse(call)
            case Bare() if step == OVERWRITE:
                self.model.overwrite()
            case _:
                raise ValueError(f"program: {str(step)!r} needs {_needed(step)}")

    def place(self, request: str, held: Rows, rows: Rows, state: int | None) -> None:
        """Write new tokens of `request` at `rows`, behind those that it holds."""
        if outside := [row for row in rows if not 0 <= row < self.geometry.token_rows]:
            raise LookupError(
                f"program: {request} is written at row {outside[0]}; the rows of this geometry "
                f"are 0..{self.geometry.token_rows - 1}"
            )
        self.model.write(request, rows, state, len(held))
        self.placed[request], self.states[request] = held + rows, state

    # -- offload and reload ------------------------------------------------------------

    def offload(
        self, name: str, rows: Rows, state: int | None, verb: Verb, form: Form = PLAIN
    ) -> None:
        """Offload `rows` as the copy `name`, and check the pool and the copy."""
        host = self._call(form, rows, state, waiting(verb, adapter_of(self.pool), self.made))
        cells = self.model.cells(rows, state)
        self.compare("offload_changes_nothing")
        copy = LiveCopy.of(name, host, self.model.save(cells), len(rows), self.made)
        buffers = list(self.model.actual)
        shared = copy.shared_with(buffers)
        if shared is not None:
            self.broken("copy_is_its_own_memory", shared)
            raise StopProgram
        page_rows = self.geometry.page_size if self.model.paged else 0
        for clause, what in copy.problems(buffers, cells, page_rows, self.owned):
            self.broken(clause, what)
        self.copies[name] = copy

    def reload(
        self, name: str, rows: Rows, state: int | None, verb: Verb, form: Form = PLAIN
    ) -> None:
        """Reload the copy `name` at `rows`, and compare every row."""
        copy = self.copies[name]
        self._check_memory(copy, "copy_is_its_own_memory", "since the offload")
        self._call(form, rows, state, verb)
        cells = self.model.cells(rows, state)
        assert copy.saved is not None, f"{name} is foreign: its reload must be refused"
        self.model.restore(copy.saved, cells)
        stays = state is None and self.pool.has_state
        self._compare_reloaded(cells, stays=stays)
        self._check_memory(copy, "reload_can_be_repeated", "in its reload")
        self.tally.reloads += 1
        self.tally.rows += len(rows)

    def offload_call(self, ids: Tensor, state: Tensor | None) -> Any:
        return adapter_of(self.pool).offload(self.made, ids, state)

    def reload_call(self, host: Any) -> Verb:
        return lambda ids, state: adapter_of(self.pool).reload(self.made, host, ids, state)

    def _call(self, form: Form, rows: Rows, state: int | None, verb: Verb) -> Any:
        ids, state_ids = self.ids(form, rows), self._state_ids(form, state)
        passed = [(t, t.clone()) for t in (ids, state_ids) if t is not None]
        result, error = outcome(verb, ids, state_ids)
        late = self.timing.look(result, self.made) if error is None else []
        error = error or self.unsettled()
        if error is not None:
            self._raised(error)
            raise StopProgram
        for clause, what in late:
            self.broken(clause, what)
        for tensor, before in passed:
            if not torch.equal(tensor, before):
                self.broken(
                    "index_tensors_are_not_modified",
                    f"ids were {before.tolist()}, are {tensor.tolist()} after the call",
                )
        return result

    def ids(self, form: Form, rows: Sequence[int]) -> Tensor:
        return ids_of(form, rows, self.timing.ids_on(self.geometry.device))

    def _state_ids(self, form: Form, state: int | None) -> Tensor | None:
        if state is None:
            return None
        ids = self.ids(dataclasses.replace(form, strided=False), (state,))
        return ids[0] if form.scalar_state else ids

    def _foreign(self, name: str, tokens: int) -> LiveCopy:
        """From a pool with one layer more."""
        other = dataclasses.replace(self.geometry, layers=self.geometry.layers + 1)
        rows = range(other.page_size, other.page_size + tokens)
        host = adapter_of(self.pool).offload(self.pool.make(other), self.ids(PLAIN, rows), None)
        return LiveCopy(name, host, None, tokens, [], [])

    # -- the other verbs ---------------------------------------------------------------

    def _move(self, step: Move) -> None:
        targets, sources = self._moved(step)
        _, error = outcome(self._move_call, self.ids(PLAIN, targets), self.ids(PLAIN, sources))
        error = error or self.unsettled()
        if error is not None:
            self.broken("move_accepts_every_token", f"raised {told(error)}")
            raise StopProgram
        cells = self.model.cells(targets, None)
        self.model.move(self.model.cells(sources, None), cells)
        while (found := self.model.first_difference(cells)) is not None:
            role, what = self.model.actual[found.buffer].role, self.model.describe(found)
            inside = (
                "move_carries_companions" if role == "companion" else "move_carries_the_payload"
            )
            self.broken(inside if found.inside else "move_leaves_other_rows_alone", what)
            self.model.adopt(found.buffer)

    def _moved(self, step: Move) -> tuple[Rows, Rows]:
        """The target and source rows of a move."""
        rows = self.placed[step.request]
        if outside := [at for at in (*step.targets, *step.sources) if at >= len(rows)]:
            raise LookupError(
                f"program: {str(step)!r} names token {outside[0]} of {step.request}, which has "
                f"{len(rows)} tokens"
            )
        return tuple(rows[at] for at in step.targets), tuple(rows[at] for at in step.sources)

    def _move_call(self, targets: Tensor, sources: Tensor | None) -> None:
        assert sources is not None
        adapter_of(self.pool).move(self.made, targets, sources)

    def _change_state(self, verb: Callable[..., None], source: int, *target: int) -> None:
        ids = [self.ids(PLAIN, (state,)) for state in (source, *target)]
        clause = "state_copy_copies_every_buffer" if target else "zeroed_state_is_zero"
        _, error = attempt(lambda: verb(self.made, *ids))
        error = error or self.unsettled()
        if error is not None:
            self.broken(clause, f"raised {told(error)}")
            raise StopProgram
        if target:
            self.model.copy_state(source, *target)
        else:
            self.model.zero_state(source)
        self.compare(clause)

    def _refuse(self, call: Offload | Reload | Free | Move | Drop) -> None:
        copy = self.copies.get(call.copy) if isinstance(call, Reload) else None
        if isinstance(call, Free | Drop):
            raise ValueError(f"program: 'refuse {call}' needs {_needed(call)}")
        rows, state, verb, form = self._illegal(call)
        clause, value = why_illegal(call, rows, copy, self.pool, self.geometry)
        ids = self.ids(form, rows)
        other = self._state_ids(form, state) if not isinstance(call, Move) else None
        if isinstance(call, Move):
            other = self.ids(form, self._moved(call)[1])
            ids = self.ids(form, self._moved(call)[0])
        _, error = outcome(verb, ids, other)
        self.refused(clause, value, error or self.unsettled())
        self.compare(clause)

    def _illegal(self, call: Offload | Reload | Move) -> tuple[Rows, int | None, Verb, Form]:
        if isinstance(call, Offload):
            rows = self.placed[call.request][call.start : call.stop]
            return rows, call.state, self.offload_call, call.form
        if isinstance(call, Reload):
            return call.rows, call.state, self.reload_call(self.copies[call.copy].host), call.form
        targets, sources = self._moved(call)
        return targets + sources, None, self._move_call, PLAIN

    # -- what is checked ---------------------------------------------------------------

    def refused(self, clause: str, value: str, error: Exception | None) -> None:
        """An illegal call must have raised one of the errors of a refusal, naming `value`."""
        if error is None:
            self.broken(clause, "the call was accepted")
        elif not isinstance(error, REFUSALS):
            expected = ", ".join(refusal.__name__ for refusal in REFUSALS)
            self.broken(clause, f"raised {told(error)}; expected one of {expected}")
        elif value and value not in str(error):
            self.broken(clause, f"raised {told(error)}; it does not name {value}")

    def compare(self, clause: str) -> None:
        """Compare every row; any difference breaks `clause`."""
        while (found := self.model.first_difference()) is not None:
            self.broken(clause, self.model.describe(found))
            self.model.adopt(found.buffer)

    def _compare_reloaded(self, cells: Cells, *, stays: bool) -> None:
        """Compare every row after a reload into `cells`; state `stays` as it was."""
        while (found := self.model.first_difference(cells)) is not None:
            role, what = self.model.actual[found.buffer].role, self.model.describe(found)
            if found.inside:
                self.on_trouble(Trouble(self.step, role, what))
            else:
                state = role == "state" and stays
                clause = "state_stays_without_ids" if state else "reload_leaves_other_rows_alone"
                self.on_trouble(Trouble(self.step, "outside", what, clause))
            self.model.adopt(found.buffer)

    def unsettled(self) -> Exception | None:
        """The error of an operation that was still queued."""
        return attempt(self.timing.settle)[1]

    def _check_copies(self) -> None:
        for copy in self.copies.values():
            if not copy.checked:
                self._check_memory(copy, "copy_is_its_own_memory", "since the offload")

    def _check_memory(self, copy: LiveCopy, clause: str, when: str) -> None:
        changed = copy.changes(when)
        if changed is not None:
            self.broken(clause, changed)
            raise StopProgram

    def _raised(self, error: Exception) -> None:
        what = f"raised {told(error)}"
        if self.front is not None:
            self.broken("allocator_forwards_the_verbs", what)
        elif isinstance(error, NotImplementedError):
            self.broken("every_verb_works", f"{what}; no `lacks` says that it is not supported")
        elif isinstance(error, TypeError) and "unexpected keyword argument" in str(error):
            self.broken("override_accepts_every_keyword", what)
        else:
            self.on_trouble(Trouble(self.step, "raised", what))

    def broken(self, clause: str, what: str) -> None:
        self.on_trouble(Trouble(self.step, "clause", what, clause))


def _needed(step: Step) -> str:
    """Who can do what a pool alone cannot."""
    return "a host tier" if isinstance(step, TierStep) or step == CLOSE else "an allocator"
