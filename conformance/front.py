"""An allocator in front of a pool: its steps, run beside the ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from conformance.adapters import AllocatorAdapter
from conformance.adapters.plain import PLAIN_ALLOCATOR
from conformance.allocator import Allocator
from conformance.calls import attempt
from conformance.ledger import Ids, Ledger
from conformance.programs import (
    BEGIN_GROUP,
    CLEAR,
    COMPACT,
    END_GROUP,
    OVERWRITE,
    PLAIN,
    SCRIBBLE_IDS,
    Bare,
    Claim,
    Extend,
    Free,
    Refuse,
    Resume,
    Retract,
    Share,
    Slide,
    Step,
)
from conformance.troubles import StopProgram, told

if TYPE_CHECKING:
    from conformance.runner import Run

_GARBAGE = 0


def allocator_adapter_of(allocator: Allocator) -> AllocatorAdapter:
    return allocator.adapter or PLAIN_ALLOCATOR


@dataclass(slots=True)
class Front:
    """The allocator of one run. `lent` are the tensors of ids that the caller holds, each
    with the values it had when it was handed out. Where the pool has state, each request has
    one of `free_states`; `with_state` says which copies hold one."""

    declared: Allocator
    made: Any
    adapter: AllocatorAdapter
    run: Run
    ledger: Ledger
    lent: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    passed: list[Tensor] = field(default_factory=list)
    claimed: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    free_states: list[int] = field(default_factory=list)
    with_state: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def before(cls, declared: Allocator, run: Run) -> Front:
        """A new allocator before the pool of `run`."""
        made = declared.make(run.made)
        adapter = allocator_adapter_of(declared)
        totals, geometry = dict(adapter.available(made)), run.geometry
        first, end, page = geometry.page_size, geometry.token_rows, geometry.page_size
        if declared.kind == "slots":
            first, end, page = 1, geometry.state_rows, 1
        elif declared.kind == "host":
            first, end = 0, geometry.size
        front = cls(declared, made, adapter, run, Ledger(first, end, page, totals))
        if "state" in run.pool.offers and "offload" in declared.offers:
            front.free_states += range(1, geometry.state_rows)
        return front

    def do(self, step: Step) -> None:
        """One step, and everything that must add up after it. A step of a request that got
        no ids, because an id space was full, does nothing; neither does one that would share
        or slide into a page that the request has not filled."""
        blame = "ids_are_conserved"
        if self._concerns_nobody(step):
            return
        match step:
            case Extend(request, None, tokens):
                blame = self._extend(request, tokens)
            case Free(requests, start):
                alive = tuple(r for r in requests if r in self.ledger.requests)
                blame = self._free(alive, start)
            case Share(request, new, tokens):
                ids = self.ledger.share(request, new, tokens)
                clause = "shared_ids_outlive_one_owner"
                self._must(clause, lambda: self.adapter.share(self.made, self._ids(ids)))
            case Slide(request, start, stop):
                blame = "mapping_dies_with_its_page"
                ids = self.ledger.requests[request][start:stop]
                self._must(blame, lambda: self.adapter.slide(self.made, self._ids(ids)))
                self.ledger.left.update(i for i in ids if self.ledger.owners[i] < 2)
            case Retract(request, copy):
                self._offload(request, copy)
                blame = self._free((request,), 0)
            case Resume(request, copy):
                blame = self._resume(request, copy)
            case Claim(request, rows):
                self.claimed.add(request)
                self.ledger.gone[request] = list(rows)
            case Refuse(Free() as call):
                blame = self._refuse(call)
            case Bare():
                blame = self._bare(step, blame)
            case _:
                raise ValueError(f"program: {str(step)!r} names rows; an allocator chooses them")
        self._check(blame)

    def finish(self) -> None:
        """Everything was compared after its step."""

    def _concerns_nobody(self, step: Step) -> bool:
        """Whether a step is about a request, or a copy of one, that got no ids; `KeyError` for
        a name that no earlier step has made."""
        self._follow_names(step)
        match step:
            case Free(requests):
                return not any(request in self.ledger.requests for request in requests)
            case Share(request, tokens=stop) | Slide(request, end=stop):
                page = self.ledger.page_size
                return len(self.ledger.requests.get(request, ())) < -(-stop // page) * page
            case Retract(request):
                return request not in self.ledger.requests
            case Resume(_, copy):
                no_state = self.with_state.get(copy, False) and not self.free_states
                return copy not in self.run.copies or no_state
            case Refuse(Free(requests) as call):
                known = self.ledger.requests.keys() | self.ledger.gone.keys()
                return not known.issuperset(requests) or not self._why_illegal(call)
        is_open = self.ledger.pending is not None
        return step == (BEGIN_GROUP if is_open else END_GROUP)

    def _follow_names(self, step: Step) -> None:
        match step:
            case Extend(request):
                self.names.add(request)
            case Claim(request):
                self.names.add(request)
            case Share(request, new):
                self._must_be_named(request)
                self.names.add(new)
            case Slide(request):
                self._must_be_named(request)
            case Free(requests) | Refuse(Free(requests)):
                self._must_be_named(*requests)
            case Retract(request, copy):
                self._must_be_named(request)
                self.names.add(f"copy {copy}")
            case Resume(request, copy):
                self._must_be_named(f"copy {copy}")
                self.names.add(request)

    def _must_be_named(self, *names: str) -> None:
        for name in names:
            if name not in self.names:
                raise KeyError(name)

    # -- steps -------------------------------------------------------------------------

    def _extend(self, request: str, tokens: int) -> str:
        """Allocate and write; the clause that what does not add up breaks."""
        held = self.ledger.requests.get(request, [])
        fits = self.ledger.fits(request, tokens)
        clause = "capacity_can_be_used" if fits else "exhaustion_changes_nothing"
        self.run.announce(self.run.step, clause)
        ids, error = attempt(
            lambda: self.adapter.alloc(self.made, tokens, self._ids(held, kept=False))
        )
        if not fits:
            if ids is not None:
                what = f"{tokens} ids were handed out, but {self.ledger.room()} are free"
                self.run.broken(clause, what)
                raise StopProgram
            return clause
        if ids is None and self.ledger.pending:
            # What the open free group has freed need not be free yet.
            return "exhaustion_changes_nothing"
        if ids is None:
            how = "None was returned" if error is None else f"raised {told(error)}"
            what = f"{how} for {tokens} ids, and {self.ledger.room()} are free"
            self.run.broken(clause, what)
            raise StopProgram
        self._accept(request, ids, tokens)
        return "ids_are_conserved"

    def _accept(self, request: str, ids: Tensor, tokens: int) -> None:
        """Take over what was handed out, and write into it."""
        for clause, what in self.ledger.refusals(request, ids, tokens):
            self._broken(clause, what)
        self._check_storage(ids)
        values = ids.tolist()
        self.lent.append((ids, ids.clone()))
        held = tuple(self.ledger.requests.get(request, ()))
        self.ledger.hand_out(request, values)
        self.run.tally.ids += len(values)
        if self.declared.kind == "host":
            return
        if self.declared.kind != "slots":
            state = self.run.states.get(request)
            if state is None and self.free_states:
                state = self.free_states.pop()
            self.run.place(request, held, tuple(values), state)
            return
        if "zeroing" in self.declared.offers:
            for slot in values:
                self.run.model.zero_state(slot)
            self.run.compare("new_state_is_zero")
        for slot in values:
            self.run.model.write(request, (), slot)

    def _check_storage(self, ids: Tensor) -> None:
        from conformance.walk import tensors_in

        at = ids.untyped_storage().data_ptr()
        for path, tensor in tensors_in(self.made):
            if ids.numel() and tensor.untyped_storage().data_ptr() == at:
                self.run.broken(
                    "ids_are_their_own_memory", f"the ids are a view of the allocator's {path}"
                )
                return

    def _free(self, requests: tuple[str, ...], start: int) -> str:
        ids = [i for request in requests for i in self.ledger.requests[request][start:]]
        blame = "ids_are_conserved"
        if not ids:
            blame = "freeing_nothing_is_legal"
        elif self.ledger.shared.intersection(ids):
            blame = "shared_ids_outlive_one_owner"
        elif self.ledger.left.intersection(ids):
            blame = "mapping_dies_with_its_page"
        self._must(blame, lambda: self.adapter.free(self.made, self._ids(ids)))
        self.ledger.free(requests, start)
        for request in requests:
            self.run.placed[request] = tuple(self.ledger.requests.get(request, ()))
            if request not in self.ledger.requests:
                self._give_back_state(request)
        return blame

    def _give_back_state(self, request: str) -> None:
        state = self.run.states.pop(request, None)
        if state is not None:
            self.free_states.append(state)

    def _offload(self, request: str, copy: str) -> None:
        rows, state = tuple(self.ledger.requests[request]), self.run.states.get(request)
        self.with_state[copy] = state is not None
        self.run.offload(copy, rows, state, partial(self.adapter.offload, self.made))

    def _resume(self, request: str, copy: str) -> str:
        blame = self._extend(request, self.run.copies[copy].tokens)
        if request in self.ledger.requests:
            rows, host = tuple(self.ledger.requests[request]), self.run.copies[copy].host
            state = self.run.states.get(request) if self.with_state[copy] else None
            self.run.reload(copy, rows, state, partial(self.adapter.reload, self.made, host))
        return blame

    def _bare(self, step: Bare, blame: str) -> str:
        if step == CLEAR:
            blame = "clear_resets_everything"
            self._must(blame, lambda: self.adapter.clear(self.made))
            self.ledger.clear()
            for request in list(self.run.states):
                self._give_back_state(request)
        elif step == BEGIN_GROUP:
            clause = "free_groups_free_at_the_end"
            self._must(clause, lambda: self.adapter.begin_group(self.made))
            self.ledger.pending = self.ledger.no_ids()
        elif step == END_GROUP:
            blame = "free_groups_free_at_the_end"
            self._must(blame, lambda: self.adapter.end_group(self.made))
            self.ledger.pending = None
        elif step == COMPACT:
            blame = "translation_follows_compaction"
            self._compact(blame)
        elif step == SCRIBBLE_IDS:
            for tensor in (*self.passed, *(ids for ids, _ in self.lent)):
                tensor.fill_(_GARBAGE)
            self.passed, self.lent = [], []
        elif step == OVERWRITE:
            self.run.model.overwrite()
        return blame

    def _compact(self, clause: str) -> None:
        model, geometry = self.run.model, self.run.geometry
        every = model.cells(tuple(range(geometry.page_size, geometry.token_rows)), None)
        saved = model.save(every)
        self._must(clause, lambda: self.adapter.compact(self.made))
        model.restore(saved, every)
        self.run.compare(clause)
        for number, buffer in enumerate(model.actual):
            if buffer.locate is not None:
                self._check_translation(clause, number, every.token)

    def _check_translation(self, clause: str, number: int, ids: Tensor) -> None:
        buffer = self.run.model.actual[number]
        assert buffer.locate is not None
        rows = self.adapter.translate(self.made, ids.to(self.run.geometry.device)).to(ids.device)
        wrong = (rows != buffer.locate(ids)).nonzero().flatten().tolist()
        if wrong:
            at = wrong[0]
            what = f"id {int(ids[at])} translates to row {int(rows[at])} of {buffer.name}"
            where = int(buffer.locate(ids)[at])
            self.run.broken(clause, f"{what}, but its bytes are in row {where}")

    def _named(self, call: Free) -> Ids:
        live, gone = self.ledger.requests, self.ledger.gone
        return [i for r in call.requests for i in (live.get(r) or gone[r])[call.start :]]

    def _why_illegal(self, call: Free) -> str:
        """The clause under which a free of ids that were given twice, freed before, or never
        handed out must be refused; "" where it is legal."""
        ids = self._named(call)
        if len(set(ids)) < len(ids):
            return "duplicate_free_is_refused"
        if self.claimed.intersection(call.requests):
            return "foreign_ids_are_not_freed"
        return "" if all(self.ledger.owners[i] for i in ids) else "double_free_is_refused"

    def _refuse(self, call: Free) -> str:
        """An illegal free."""
        ids, clause = self._named(call), self._why_illegal(call)
        _, error = attempt(lambda: self.adapter.free(self.made, self._ids(ids)))
        self.run.refused(clause, "", error)
        return clause

    # -- what every step needs ---------------------------------------------------------

    def _ids(self, ids: Ids, *, kept: bool = True) -> Tensor:
        """`ids` as a tensor that the caller keeps, and may overwrite later."""
        tensor = self.run.ids(PLAIN, ids)
        if kept:
            self.passed.append(tensor)
        return tensor

    def _must(self, clause: str, call: Callable[[], Any]) -> None:
        _, error = attempt(call)
        if error is not None:
            self.run.broken(clause, f"raised {told(error)}")
            raise StopProgram

    def _check(self, blame: str) -> None:
        """Lent ids keep their values, and everything adds up."""
        for ids, before in self.lent:
            if not torch.equal(ids, before):
                what = f"ids that were {before.tolist()} are {ids.tolist()} now"
                self._broken("ids_keep_their_values", what)
        available = self.adapter.available(self.made)
        mapping = self.adapter.mapping(self.made) if self.declared.kind == "window" else None
        for clause, what in self.ledger.problems(available, mapping, blame):
            self._broken(clause, what)

    def _broken(self, clause: str, what: str) -> None:
        """The ids are not what they must be. Where the caller has overwritten its tensors,
        the allocator had kept one of them: programs without that show all other faults."""
        self.run.broken(clause, what)
        raise StopProgram
