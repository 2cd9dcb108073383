"""A host tier behind a pool: its steps, run while its copies are in flight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from conformance.adapters import HostTierAdapter
from conformance.adapters.plain import PLAIN_HOST_TIER
from conformance.calls import attempt
from conformance.host_tier import HostTier
from conformance.model import Saved
from conformance.programs import (
    CLOSE,
    OVERWRITE,
    PLAIN,
    Await,
    BackUp,
    Claim,
    Drop,
    Load,
    Poll,
    Read,
    Refuse,
    Step,
    Use,
    Write,
)
from conformance.refusals import REFUSALS
from conformance.step_text import Rows
from conformance.tiers.flights import Flight, Flights
from conformance.tiers.reads import Look, look
from conformance.tiers.room import Room
from conformance.timing import told_late
from conformance.troubles import StopProgram, Trouble, told

if TYPE_CHECKING:
    from conformance.runner import Run

POLLS = 10_000
"""How often a copy is asked whether it is done before the host waits for it."""


def host_tier_adapter_of(tier: HostTier) -> HostTierAdapter:
    return tier.adapter or PLAIN_HOST_TIER


@dataclass(slots=True)
class TierFront:
    """The host tier of one run.

    `backups` are those whose host rows are held, `saved` what they must hold, `loads` the last
    one of each request, `dropped` the backups whose rows were given back, `reused` those whose
    rows others may have by now, `left_out` the requests for whose backup there was no room.
    """

    declared: HostTier
    made: Any
    adapter: HostTierAdapter
    run: Run
    room: Room
    flights: Flights = field(default_factory=lambda: Flights([]))
    looks: list[Look] = field(default_factory=list)
    backups: dict[str, Flight] = field(default_factory=dict)
    saved: dict[str, Saved] = field(default_factory=dict)
    loads: dict[str, Flight] = field(default_factory=dict)
    dropped: dict[str, Flight] = field(default_factory=dict)
    reused: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)

    @classmethod
    def before(cls, declared: HostTier, run: Run) -> TierFront:
        """A new tier behind the pool of `run`."""
        made, adapter = declared.make(run.made), host_tier_adapter_of(declared)
        return cls(declared, made, adapter, run, Room(dict(adapter.available(made))))

    def do(self, step: Step) -> None:
        """One step. One of a request that has no backup, because there was no room, does
        nothing."""
        if self.made is None:
            raise LookupError(f"program: {str(step)!r} comes after 'close'")
        about = step.call if isinstance(step, Refuse) else step
        if getattr(about, "request", "") in self.left_out and not isinstance(step, Write):
            return
        match step:
            case Write(request, rows, state):
                self._must_be_free(step, rows, state)
                self.flights.overwritten(rows, state)
                self.run.place(request, (), rows, state)
            case BackUp(request):
                self._back_up(step, request)
            case Load(request, rows, state):
                self._load(step, request, rows, state)
            case Await(which, request):
                self._await(self._flight(which, request))
            case Poll(which, request):
                self._poll(self._flight(which, request))
            case Use(request):
                self._use(self.loads[request])
            case Read(request):
                rows, state = self.run.placed[request], self.run.states[request]
                self._must_be_free(step, rows, state, "load")
                self._look(rows, state)
            case Claim(request, rows):
                self.run.placed[request], self.run.states[request] = rows, None
            case Drop(request) if request in self.backups or request not in self.dropped:
                self._drop(request)
            case Refuse(Drop(request)) if self._is_gone(request):
                self._drop_again(request)
            case Drop() | Refuse(Drop()):
                pass  # with copies in flight: given back already, or refused
            case _ if step == OVERWRITE and not self.flights.unfinished():
                self.run.model.overwrite()
            case _ if step == CLOSE:
                self._close()
                return
            case _:
                raise ValueError(f"program: {str(step)!r} is no step of a host tier here")
        self._check_room()

    def finish(self) -> None:
        """Wait for everything, and compare everything. The stream's reads come first: once the
        loads are over, none of them is too early."""
        if (error := attempt(self.run.timing.settle_stream)[1]) is not None:
            self._raised(error)
        for flight in self.flights.unfinished():
            self._must(partial(self.adapter.wait, self.made, flight.handle))
            self._done(flight, "its wait had returned, at the end", flight.step)
        if self.made is not None:
            self.room.settle()
            self._check_room()
        if (error := self.run.unsettled()) is not None:
            self._raised(error)
        self._judge_looks()
        for load in self.flights.begun:
            if load.way == "load":
                self._compare(load, load.step)
        self.run.compare("host_tier_leaves_other_rows_alone")

    # -- steps -------------------------------------------------------------------------

    def _back_up(self, step: BackUp, request: str) -> None:
        rows, state = self._pages(step, request)
        if request in self.backups:
            raise LookupError(f"program: {str(step)!r}: it is backed up already; drop it first")
        fits = self.room.has(len(rows), state)
        begin = self.run.timing.serial()
        handle, error = self._with_ids(self.adapter.backup, (), rows, state)
        if error is not None and fits:
            self._raised(error)
        if handle is None and fits:
            self._stop("host_rows_are_conserved", f"no backup of {len(rows)} tokens; {self.room}")
        if handle is not None and fits is False:
            self._stop("full_host_changes_nothing", f"a backup of {len(rows)} tokens; {self.room}")
        if handle is None:
            self.left_out.add(request)
            return
        self.room.take(len(rows), state)
        self.reused.update(self.dropped)
        flight = self._begin("backup", request, handle, rows, state, begin)
        self.backups[request] = flight
        self.saved[request] = self.run.model.save(self.run.model.cells(rows, state))

    def _load(self, step: Load, request: str, rows: Rows, state: int | None) -> None:
        backup = self.backups[request]
        if len(rows) != len(backup.rows) or (state is None) != (backup.state is None):
            have = f"{len(backup.rows)} tokens" + (" and a state" if backup.state else "")
            raise LookupError(f"program: {str(step)!r}: its backup has {have}")
        self.flights.overwritten(rows, state)
        begin = self.run.timing.serial()
        handle, error = self._with_ids(self.adapter.load, (backup.handle,), rows, state)
        if error is not None:
            self._raised(error)
        self.loads[request] = self._begin("load", request, handle, rows, state, begin)
        self.run.placed[request], self.run.states[request] = rows, state
        self._pages(step, request)
        self.run.model.restore(self.saved[request], self.run.model.cells(rows, state))
        self.run.tally.reloads += 1
        self.run.tally.rows += len(rows)

    def _await(self, flight: Flight) -> None:
        if flight.is_done:
            return
        self._must(lambda: self.adapter.wait(self.made, flight.handle))
        self._done(flight, "its wait had returned", self.run.step)

    def _poll(self, flight: Flight) -> None:
        for _ in range(0 if flight.is_done else POLLS):
            if self._must(lambda: self.adapter.is_done(self.made, flight.handle)):
                self._done(flight, "it had said that it was done", self.run.step)
                return
        self._await(flight)
        if not self._must(lambda: self.adapter.is_done(self.made, flight.handle)):
            clause = f"{flight.way}_is_complete_when_awaited"
            self.run.broken(clause, f"the {flight} says that it is not done after its wait")

    def _use(self, load: Flight) -> None:
        """Each layer as soon as the current stream may read it."""
        for layer in range(max(len(buffer.rows) for buffer in self.run.model.actual)):
            self._must(partial(self.adapter.wait_layer, self.made, load.handle, layer))
            self._look(load.rows, load.state, layer=layer, queued=load.queued)
        load.is_seen = True

    def _drop(self, request: str) -> None:
        backup = self.backups[request]
        in_flight = bool(self.flights.of(request))
        _, error = attempt(lambda: self.adapter.free(self.made, backup.handle))
        if error is not None and in_flight and isinstance(error, (*REFUSALS, RuntimeError)):
            return
        if error is not None:
            self._raised(error)
        self.dropped[request] = self.backups.pop(request)
        self.room.give_back(len(backup.rows), backup.state, later=in_flight)

    def _drop_again(self, request: str) -> None:
        gone = self.dropped[request]
        _, error = attempt(lambda: self.adapter.free(self.made, gone.handle))
        clause = "double_drop_is_refused"
        if error is None:
            self._stop(clause, "the call was accepted")
        elif not isinstance(error, RuntimeError):
            self.run.refused(clause, "", error)

    def _is_gone(self, request: str) -> bool:
        """Whether its host rows were given back, and nobody can have got them since."""
        if request in self.backups:
            return False
        return self.dropped[request].request not in self.reused

    def _close(self) -> None:
        """Let go of the tier and of what it returned. The rest of the program waits for the
        device."""
        self.made = None
        for flight in self.flights.begun:
            flight.handle, flight.is_done = None, True

    # -- what every step needs ---------------------------------------------------------

    def _pages(self, step: Step, request: str) -> tuple[Rows, int | None]:
        """The rows of a request, which must be whole pages, and its state."""
        rows, page = self.run.placed[request], self.run.geometry.page_size
        for at, row in enumerate(rows):
            if row - at % page != rows[at - at % page] or (not at % page and row % page):
                break
        else:
            if len(rows) and not len(rows) % page:
                return rows, self.run.states[request]
        raise LookupError(f"program: {str(step)!r}: a host tier copies whole pages of {page} rows")

    def _must_be_free(self, step: Step, rows: Rows, state: int | None, way: str = "") -> None:
        """A caller must not use rows of a copy in flight before it has waited for it."""
        for flight in self.flights.unseen(rows, state):
            if flight.way == (way or flight.way):
                raise LookupError(
                    f"program: {str(step)!r} uses rows of the {flight}, which is in flight; "
                    f"`await {flight}` comes first"
                )

    def _flight(self, which: str, request: str) -> Flight:
        if which == "load":
            return self.loads[request]
        return self.backups.get(request) or self.dropped[request]

    def _begin(
        self, way: Any, request: str, handle: Any, rows: Rows, state: int | None, begin: int
    ) -> Flight:
        queued = range(begin, self.run.timing.serial())
        page, step = self.run.geometry.page_size, self.run.step
        self.flights.begun.append(Flight(way, request, handle, rows, state, page, step, queued))
        return self.flights.begun[-1]

    def _with_ids(
        self, verb: Callable[..., Any], before: tuple[Any, ...], rows: Rows, state: int | None
    ) -> tuple[Any, Exception | None]:
        ids = self.run.ids(PLAIN, rows)
        states = None if state is None else self.run.ids(PLAIN, (state,))
        return attempt(lambda: verb(self.made, *before, ids, states))

    def _must(self, call: Callable[[], Any]) -> Any:
        result, error = attempt(call)
        if error is not None:
            self._raised(error)
        return result

    def _raised(self, error: Exception) -> NoReturn:
        self.run.on_trouble(Trouble(self.run.step, "raised", f"raised {told(error)}"))
        raise StopProgram

    # -- what is checked ---------------------------------------------------------------

    def _look(self, rows: Rows, state: int | None, **of_load: Any) -> None:
        run = self.run
        cells = run.model.cells(rows, state)
        self.looks += look(run.model, run.timing, cells, run.step, **of_load)

    def _done(self, flight: Flight, when: str, step: int) -> None:
        """The host goes on: nothing of the copy may be left on the device."""
        flight.is_done = True
        late = self.run.timing.unfinished(flight.queued)
        for buffer in self.run.model.actual if late else ():
            for layer, rows in enumerate(buffer.rows):
                reads = flight.way == "backup"
                left = [op for op in late if (op.will_read if reads else op.will_write)(rows)]
                if left:
                    place = f"{buffer.name}, layer {buffer.first_layer + layer}"
                    done = "read" if reads else "written"
                    what = f"{place}, is not {done} yet: {told_late(left[0])} when {when}"
                    clause = f"{flight.way}_is_complete_when_awaited"
                    self.run.on_trouble(Trouble(step, "clause", what, clause))
                    return
        if flight.way == "load" and not flight.is_stale:
            self._compare(flight, step)

    def _compare(self, load: Flight, step: int) -> None:
        """The rows of a load, as they are now."""
        model, cells = self.run.model, self.run.model.cells(load.rows, load.state)
        while (found := model.difference_within(cells)) is not None:
            role, what = model.actual[found.buffer].role, model.describe(found)
            self.run.on_trouble(Trouble(step, role, what))
            model.adopt(found.buffer)

    def _judge_looks(self) -> None:
        model = self.run.model
        for each in self.looks:
            if early := each.too_early(model):
                clause = "layer_is_complete_when_awaited"
                self.run.on_trouble(Trouble(each.step, "clause", early, clause))
            elif (wrong := each.difference()) is not None:
                role, what = model.actual[each.number].role, model.told(*wrong)
                self.run.on_trouble(Trouble(each.step, role, f"the stream read it: {what}"))

    def _check_room(self) -> None:
        if wrong := self.room.problem(self.adapter.available(self.made)):
            self._stop("host_rows_are_conserved", wrong)

    def _stop(self, clause: str, what: str) -> NoReturn:
        self.run.broken(clause, what)
        raise StopProgram
