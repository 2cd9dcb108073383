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
from conformance.step_text import Rows
from conformance.tiers.flights import Flight, Flights
from conformance.tiers.legal import check_free, check_idle, check_place, check_state
from conformance.tiers.reads import Look, look
from conformance.tiers.room import Room
from conformance.tiers.verdicts import compare, complete, judge_done, judge_looks
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
    rows others may have by now, `asked` the requests that were dropped in flight, `left_out`
    those for whose backup there was no room.
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
    asked: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)

    @classmethod
    def before(cls, declared: HostTier, run: Run) -> TierFront:
        """A new tier behind the pool of `run`."""
        made, adapter = declared.make(run.made), host_tier_adapter_of(declared)
        totals = dict(adapter.available(made))
        if not totals.get("token"):
            raise ValueError(
                f"HostTier {declared.name!r}: available() of a new tier must be how many rows are "
                f"free, such as {{'token': 20}}, got {totals}"
            )
        return cls(declared, made, adapter, run, Room(totals))

    def do(self, step: Step) -> None:
        """One step. One of a request that has no backup, because there was no room, does
        nothing."""
        if self.made is None:
            raise LookupError(f"program: {str(step)!r} comes after 'close'")
        about = step.call if isinstance(step, Refuse) else step
        if getattr(about, "request", "") in self.left_out and not isinstance(step, Write | BackUp):
            return
        self.run.announce(self.run.step, "host_tier_verbs_work")
        match step:
            case Write(request, rows, state):
                has_state = self.run.pool.has_state
                check_state(step, state, self.run.geometry, has_state=has_state)
                check_free(step, self.flights, rows, state)
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
                check_free(step, self.flights, rows, state, "load")
                self._look(rows, state, brought=self.loads.get(request))
            case Claim(request, rows):
                self.run.placed[request], self.run.states[request] = rows, None
            case Drop(request):
                self._drop(step, request)
            case Refuse(Drop(request)):
                self._drop_again(step, request)
            case _ if step == OVERWRITE:
                check_idle(step, self.flights)
                self.run.model.overwrite()
            case _ if step == CLOSE:
                self._close()
            case _:
                raise ValueError(f"program: {str(step)!r} is no step of a host tier")
        if isinstance(step, BackUp | Drop | Refuse):
            self._check_room()

    def finish(self) -> None:
        """Wait for everything, and compare everything. The stream's reads come first: once the
        loads are over, none of them is too early."""
        if (error := attempt(self.run.timing.settle_stream)[1]) is not None:
            self._raised(error)
        for flight in self.flights.unfinished():
            self._must(partial(self.adapter.wait, self.made, flight.handle))
            judge_done(self.run, flight, "its wait had returned, at the end", flight.step)
        if self.made is not None:
            self._check_room()
        if (error := attempt(self.run.timing.settle_all)[1]) is not None:
            self._raised(error)
        judge_looks(self.run, self.looks)
        for load in self.flights.begun:
            if load.way == "load":
                compare(self.run, load, load.step)
        self.run.compare("host_tier_leaves_other_rows_alone")

    # -- steps -------------------------------------------------------------------------

    def _back_up(self, step: BackUp, request: str) -> None:
        rows, state = self._place(step, request)
        if request in self.backups:
            raise LookupError(f"program: {str(step)!r}: it is backed up already; drop it first")
        self.left_out.discard(request)
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
        self.asked.discard(request)
        flight = self._begin("backup", request, handle, rows, state, begin)
        self.backups[request] = flight
        self.saved[request] = self.run.model.save(self.run.model.cells(rows, state))

    def _load(self, step: Load, request: str, rows: Rows, state: int | None) -> None:
        backup = self.backups[request]
        if len(rows) != len(backup.rows) or (state is None) != (backup.state is None):
            state_too = "no state" if backup.state is None else "a state"
            have = f"{len(backup.rows)} tokens and {state_too}"
            raise LookupError(f"program: {str(step)!r}: its backup has {have}")
        self._check_place(step, rows, state)
        self.flights.overwritten(rows, state)
        begin = self.run.timing.serial()
        handle, error = self._with_ids(self.adapter.load, (backup.handle,), rows, state)
        if error is not None:
            self._raised(error)
        self.loads[request] = self._begin("load", request, handle, rows, state, begin)
        self.loads[request].source = backup
        self.run.placed[request], self.run.states[request] = rows, state
        self.run.model.restore(self.saved[request], self.run.model.cells(rows, state))
        self.run.tally.reloads += 1
        self.run.tally.rows += len(rows)

    def _await(self, flight: Flight) -> None:
        if flight.is_done:
            return
        self._must(lambda: self.adapter.wait(self.made, flight.handle))
        judge_done(self.run, flight, "its wait had returned", self.run.step)

    def _poll(self, flight: Flight) -> None:
        for _ in range(0 if flight.is_done else POLLS):
            if self._must(lambda: self.adapter.is_done(self.made, flight.handle)):
                judge_done(self.run, flight, "it had said that it was done", self.run.step)
                return
        self._await(flight)
        if not self._must(lambda: self.adapter.is_done(self.made, flight.handle)):
            what = f"the {flight} says that it is not done after its wait"
            self.run.broken(complete(flight.way), what)

    def _use(self, load: Flight) -> None:
        """Each layer as soon as the current stream may read it."""
        cells = self.run.model.cells(load.rows, load.state)
        images = [i for i in self.run.model.expected if i.places(cells)[0].numel()]
        for layer in range(max(len(image.layers) for image in images)):
            self._must(partial(self.adapter.wait_layer, self.made, load.handle, layer))
            self._look(load.rows, load.state, layer=layer, load=load, brought=load)
        load.is_seen = True

    def _drop(self, step: Drop, request: str) -> None:
        if request in self.dropped and request not in self.backups:
            self._must_be_asked(step, request, "was dropped already; try `refuse drop`")
            return
        backup = self.backups[request]
        in_flight = bool(self.flights.of(request))
        if in_flight:
            self.asked.add(request)
        _, error = attempt(lambda: self.adapter.free(self.made, backup.handle))
        if error is not None and in_flight:
            return
        if error is not None:
            self._raised(error)
        self.dropped[request] = self.backups.pop(request)
        self.room.give_back(len(backup.rows), backup.state, later=in_flight)

    def _drop_again(self, step: Refuse, request: str) -> None:
        if request in self.backups:
            self._must_be_asked(step, request, "holds host rows; drop it first")
            return
        if request in self.reused:
            return  # the rows may be another's by now, and free to be dropped
        gone = self.dropped[request]
        _, error = attempt(lambda: self.adapter.free(self.made, gone.handle))
        clause = "double_drop_is_refused"
        if error is None:
            self._stop(clause, "the call was accepted")

    def _must_be_asked(self, step: Step, request: str, why: str) -> None:
        """A drop with copies in flight may have been refused or not; after any other it is
        known whether rows are held."""
        if request not in self.asked:
            raise LookupError(f"program: {str(step)!r}: {request} {why}")

    def _close(self) -> None:
        """Let go of the tier and of what it returned. The rest of the program waits for the
        device."""
        self.made = None
        for flight in self.flights.begun:
            flight.handle, flight.is_done = None, True

    # -- what every step needs ---------------------------------------------------------

    def _place(self, step: Step, request: str) -> tuple[Rows, int | None]:
        """The rows of a request, which must be whole pages, and its state."""
        rows, state = self.run.placed[request], self.run.states[request]
        self._check_place(step, rows, state)
        return rows, state

    def _check_place(self, step: Step, rows: Rows, state: int | None) -> None:
        geometry, has_state = self.run.geometry, self.declared.carries_state
        check_place(step, rows, state, geometry, has_state=has_state)

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
        hint = "; no `lacks` says so" if isinstance(error, NotImplementedError) else ""
        self.run.on_trouble(Trouble(self.run.step, "raised", f"raised {told(error)}{hint}"))
        raise StopProgram

    # -- what is checked ---------------------------------------------------------------

    def _look(self, rows: Rows, state: int | None, **of_load: Any) -> None:
        run = self.run
        cells = run.model.cells(rows, state)
        self.looks += look(run.model, run.timing, cells, run.step, **of_load)

    def _check_room(self) -> None:
        if not self.flights.unfinished():
            self.room.settle()
        available = self._must(partial(self.adapter.available, self.made))
        if wrong := self.room.problem(available):
            self._stop("host_rows_are_conserved", wrong)

    def _stop(self, clause: str, what: str) -> NoReturn:
        self.run.broken(clause, what)
        raise StopProgram
