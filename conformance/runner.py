"""Run a program on a pool beside the model, and say what broke first."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from conformance.adapters import Adapter
from conformance.adapters.plain import PLAIN as PLAIN_ADAPTER
from conformance.buffers import Inventory, take_inventory
from conformance.geometry import Geometry
from conformance.model import Cells, Model, Saved
from conformance.pool import Pool
from conformance.programs import (
    Claim,
    Foreign,
    Form,
    Offload,
    Overwrite,
    Program,
    Refuse,
    Reload,
    Rows,
    Scribble,
    Step,
    Write,
)
from conformance.walk import tensors_in

REFUSALS = (TypeError, ValueError, IndexError)
GARBAGE = 0xA5
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_DTYPES = {"int64": torch.int64, "int32": torch.int32, "float32": torch.float32}

Kind = Literal["raised", "payload", "companion", "state", "outside", "clause"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that went wrong at a step.

    `kind` is `clause` where the step itself says which clause is broken: `clause` names it.
    Else it is an exception, a difference inside the index set in a buffer of that role, or
    one outside it (`clause` names the plainest explanation); which clause that breaks
    depends on what makes it go away: see `diagnosis`.
    """

    step: int
    kind: Kind
    what: str
    clause: str = ""


@dataclass(slots=True)
class Tally:
    """What a check did: programs run, reloads compared, rows moved, known failures met."""

    programs: int = 0
    reloads: int = 0
    rows: int = 0
    known: int = 0

    def add(self, other: Tally) -> None:
        self.programs += other.programs
        self.reloads += other.reloads
        self.rows += other.rows
        self.known += other.known


class StopProgram(Exception):  # noqa: N818
    """Ends a program early: what follows would only repeat a failure already told."""


Verb = Callable[[Tensor, Tensor | None], Any]
"""Offload or reload with everything given but the ids of tokens and of state."""

OnTrouble = Callable[[Trouble], None]
"""Called at each trouble; returns to go on, raises to end the program."""


@dataclass(slots=True)
class _Copy:
    """A copy that is alive: the host object, what it must hold, and its bytes when made."""

    host: Any
    saved: Saved | None
    tokens: int
    tensors: list[tuple[str, Tensor]]
    bytes: list[tuple[Tensor, Tensor]]
    checked: bool = False

    @classmethod
    def of(cls, host: Any, saved: Saved, tokens: int, pool: Any) -> _Copy:
        tensors = [(path, tensor) for path, tensor in tensors_in(host, skip=pool) if tensor.numel()]
        views = [tensor.view(_BITS.get(tensor.itemsize, tensor.dtype)) for _, tensor in tensors]
        return cls(host, saved, tokens, tensors, [(view, view.clone()) for view in views])


def adapter_of(pool: Pool) -> Adapter:
    return pool.adapter or PLAIN_ADAPTER


def build(pool: Pool, geometry: Geometry) -> tuple[Any, Inventory]:
    """A new pool of this geometry, and its buffers."""
    made = pool.make(geometry)
    inventory = take_inventory(made, geometry, adapter_of(pool))
    if not inventory.buffers:
        raise ValueError(
            f"Pool {pool.name!r}: {type(made).__name__} has no tensor with "
            f"{geometry.token_rows} token rows (size={geometry.size} plus one page)"
        )
    return made, inventory


def run(pool: Pool, geometry: Geometry, program: Program, on_trouble: OnTrouble) -> Tally:
    """Run `program` on a new pool and compare every row after each step that may change one.

    Each trouble goes to `on_trouble`, which decides whether to go on.
    """
    made, inventory = build(pool, geometry)
    model = Model(inventory.buffers, geometry.page_size, pool.ids == "page")
    run = _Run(pool, geometry, program, on_trouble, made, model, inventory.storages)
    return run.run()


@dataclass(slots=True)
class _Run:
    pool: Pool
    geometry: Geometry
    program: Program
    on_trouble: OnTrouble
    made: Any
    model: Model
    owned: frozenset[int]
    step: int = 0
    tally: Tally = field(default_factory=lambda: Tally(programs=1))
    copies: dict[str, _Copy] = field(default_factory=dict)
    placed: dict[str, Rows] = field(default_factory=dict)

    def run(self) -> Tally:
        try:
            for number, step in enumerate(self.program):
                self.step = number
                self._do(step)
            self._check_copies()
        except StopProgram:
            pass
        return self.tally

    def _do(self, step: Step) -> None:
        match step:
            case Write(request, rows, state):
                self.model.write(request, rows, state)
                self.placed[request] = rows
            case Claim(request, rows):
                self.placed[request] = rows
            case Overwrite():
                self.model.overwrite()
            case Offload():
                self._offload(step)
            case Reload():
                self._reload(step)
            case Scribble(name):
                self._scribble(self.copies.pop(name))
            case Foreign(name, tokens):
                self.copies[name] = self._foreign(tokens)
            case Refuse(call):
                self._refuse(call)

    # -- the verbs ---------------------------------------------------------------------

    def _offload(self, step: Offload) -> None:
        rows = self.placed[step.request][step.start : step.stop]
        host = self._call(step.form, rows, step.state, self._offload_call)
        cells = self.model.cells(rows, step.state)
        self._compare("offload_changes_nothing")
        saved = self.model.save(cells)
        copy = _Copy.of(host, saved, len(rows), self.made)
        self._check_sharing(step.copy, copy)
        self._check_place(copy)
        self._check_size(copy, cells)
        self.copies[step.copy] = copy

    def _reload(self, step: Reload) -> None:
        copy = self.copies[step.copy]
        self._check_memory(step.copy, copy, "copy_is_its_own_memory", "since the offload")
        self._call(step.form, step.rows, step.state, self._reload_call(copy.host))
        cells = self.model.cells(step.rows, step.state)
        assert copy.saved is not None, f"{step.copy} is foreign: its reload must be refused"
        self.model.restore(copy.saved, cells)
        self._compare_reloaded(cells, with_state=step.state is not None)
        self._check_memory(step.copy, copy, "reload_can_be_repeated", "in its reload")
        self.tally.reloads += 1
        self.tally.rows += len(step.rows)

    def _offload_call(self, ids: Tensor, state: Tensor | None) -> Any:
        return adapter_of(self.pool).offload(self.made, ids, state)

    def _reload_call(self, host: Any) -> Verb:
        return lambda ids, state: adapter_of(self.pool).reload(self.made, host, ids, state)

    def _call(
        self,
        form: Form,
        rows: Rows,
        state: int | None,
        verb: Verb,
    ) -> Any:
        ids, state_ids = self._ids(form, rows), self._state_ids(form, state)
        passed = [(t, t.clone()) for t in (ids, state_ids) if t is not None]
        result, error = _outcome(verb, ids, state_ids)
        if error is not None:
            self._raised(error)
            raise StopProgram
        for tensor, before in passed:
            if not torch.equal(tensor, before):
                self._broken(
                    "index_tensors_are_not_modified",
                    f"ids were {before.tolist()}, are {tensor.tolist()} after the call",
                )
        return result

    def _ids(self, form: Form, rows: Rows) -> Tensor:
        device = "cpu" if form.on_host else self.geometry.device
        values = [v for row in rows for v in (row, -1)] if form.strided else rows
        ids = torch.tensor(values, dtype=_DTYPES[form.dtype], device=device)
        return ids[::2] if form.strided else ids

    def _state_ids(self, form: Form, state: int | None) -> Tensor | None:
        if state is None:
            return None
        ids = self._ids(dataclasses.replace(form, strided=False), (state,))
        return ids[0] if form.scalar_state else ids

    # -- steps that are not the pool's -------------------------------------------------

    def _scribble(self, copy: _Copy) -> None:
        for view, _ in copy.bytes:
            view.fill_(GARBAGE)
        self._compare("copy_is_its_own_memory")

    def _foreign(self, tokens: int) -> _Copy:
        """From a pool with one layer more."""
        other = dataclasses.replace(self.geometry, layers=self.geometry.layers + 1)
        rows = tuple(range(other.page_size, other.page_size + tokens))
        host = adapter_of(self.pool).offload(self.pool.make(other), self._ids(Form(), rows), None)
        return _Copy(host, None, tokens, [], [])

    def _refuse(self, call: Offload | Reload) -> None:
        clause, value = self._why_illegal(call)
        verb: Verb = self._offload_call
        if isinstance(call, Offload):
            rows = self.placed[call.request][call.start : call.stop]
        else:
            rows, verb = call.rows, self._reload_call(self.copies[call.copy].host)
        ids, state = self._ids(call.form, rows), self._state_ids(call.form, call.state)
        _, error = _outcome(verb, ids, state)
        if error is None:
            self._broken(clause, "the call was accepted")
        elif not isinstance(error, REFUSALS):
            expected = ", ".join(refusal.__name__ for refusal in REFUSALS)
            self._broken(clause, f"raised {_told(error)}; expected one of {expected}")
        elif value and value not in str(error):
            self._broken(clause, f"raised {_told(error)}; it does not name {value}")
        self._compare(clause)

    def _why_illegal(self, call: Offload | Reload) -> tuple[str, str]:
        """The clause that `call` must be refused under, and what the error must name."""
        rows: Rows = call.rows if isinstance(call, Reload) else self.placed[call.request]
        copy = self.copies.get(call.copy) if isinstance(call, Reload) else None
        if call.form.dtype == "float32":
            return "wrong_dtype_is_refused", "float32"
        for row in rows:
            if row < 0:
                return "negative_ids_are_refused", str(row)
            if row < self.geometry.page_size:
                return "reserved_rows_are_refused", str(row)
            if row >= self.geometry.token_rows:
                return "out_of_range_ids_are_refused", str(row)
        if copy is not None and copy.saved is None:
            return "foreign_copy_is_refused", ""
        if copy is not None and copy.tokens != len(rows):
            return "wrong_length_is_refused", str(copy.tokens)
        if not self.pool.has_state:
            return "state_is_refused_not_dropped", "state"
        return "state_mismatch_is_refused", "state"

    # -- what is checked ---------------------------------------------------------------

    def _compare(self, clause: str) -> None:
        """Compare every row; any difference breaks `clause`."""
        while (found := self.model.first_difference()) is not None:
            self._broken(clause, self.model.describe(found))
            self.model.adopt(found.buffer)

    def _compare_reloaded(self, cells: Cells, *, with_state: bool) -> None:
        """Compare every row after a reload into `cells`."""
        while (found := self.model.first_difference(cells)) is not None:
            role, what = self.model.actual[found.buffer].role, self.model.describe(found)
            if found.inside:
                self.on_trouble(Trouble(self.step, role, what))
            else:
                stays = role == "state" and not with_state
                clause = "state_stays_without_ids" if stays else "reload_leaves_other_rows_alone"
                self.on_trouble(Trouble(self.step, "outside", what, clause))
            self.model.adopt(found.buffer)

    def _check_copies(self) -> None:
        for name, copy in self.copies.items():
            if not copy.checked:
                self._check_memory(name, copy, "copy_is_its_own_memory", "since the offload")

    def _check_memory(self, name: str, copy: _Copy, clause: str, when: str) -> None:
        copy.checked = True
        for (path, _), (now, before) in zip(copy.tensors, copy.bytes, strict=True):
            if not torch.equal(now, before):
                what = f"the host tensor {path or 'itself'} of {name} has changed {when}"
                self._broken(clause, what)
                raise StopProgram

    def _check_sharing(self, name: str, copy: _Copy) -> None:
        pool = {
            rows.untyped_storage().data_ptr(): b.name for b in self.model.actual for rows in b.rows
        }
        for path, tensor in copy.tensors:
            shared = pool.get(tensor.untyped_storage().data_ptr())
            if shared is not None:
                what = f"the host tensor {path or 'itself'} of {name} is a view of the pool's"
                self._broken("copy_is_its_own_memory", f"{what} {shared}")
                raise StopProgram

    def _check_place(self, copy: _Copy) -> None:
        for path, tensor in copy.tensors:
            if tensor.device.type != "cpu":
                self._broken("copy_is_on_the_host", f"{path} of the copy is on {tensor.device}")

    def _check_size(self, copy: _Copy, cells: Cells) -> None:
        storages = {t.untyped_storage().data_ptr(): t for _, t in copy.tensors}
        held = sum(
            # A slice of host memory that the pool itself keeps is not the copy's alone.
            t.nbytes if at in self.owned else t.untyped_storage().nbytes()
            for at, t in storages.items()
        )
        limit = self._size_limit(cells)
        if held > limit:
            self._broken(
                "copy_size_is_bounded",
                f"the copy of {copy.tokens} tokens holds {held} bytes; its rows and ids, "
                f"twice, are {limit}",
            )

    def _size_limit(self, cells: Cells) -> int:
        rows = {unit: cells.of(unit).numel() for unit in ("token", "page", "state")}
        if self.model.paged:
            rows["token"] = rows["page"] * self.geometry.page_size
        return 2 * sum(rows[b.unit] * b.row_bytes for b in self.model.actual) + 16 * sum(
            rows.values()
        )

    def _raised(self, error: Exception) -> None:
        what = f"raised {_told(error)}"
        if isinstance(error, NotImplementedError):
            self._broken("every_verb_works", f"{what}; no `lacks` says that it is not supported")
        elif isinstance(error, TypeError) and "unexpected keyword argument" in str(error):
            self._broken("override_accepts_every_keyword", what)
        else:
            self.on_trouble(Trouble(self.step, "raised", what))

    def _broken(self, clause: str, what: str) -> None:
        self.on_trouble(Trouble(self.step, "clause", what, clause))


def _outcome(verb: Verb, ids: Tensor, state_ids: Tensor | None) -> tuple[Any, Exception | None]:
    # What is raised later must not carry this error as its context: Hypothesis would take
    # the same failure, met at another place in the engine, for a different one.
    try:
        return verb(ids, state_ids), None
    except Exception as error:
        return None, error


def _told(error: Exception) -> str:
    """The error, and where in the engine it was raised: `TypeError: ... (mla.py:30)`."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    message = str(error).split("\n", 1)[0]
    told = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{told} ({Path(place.filename).name}:{place.lineno})"
