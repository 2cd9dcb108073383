"""Request lives: several requests alive at once, extended, moved, retracted and resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from conformance.index_sets import SHAPES, arrange, lengths
from conformance.programs import (
    Extend,
    Free,
    Move,
    Offload,
    Resume,
    Retract,
    Write,
)
from conformance.scenarios.moves import positions
from conformance.scenarios.script import Script
from conformance.step_text import Rows

TURNS = 12
"""The most turns between an episode's first request and its end."""


@dataclass(slots=True)
class _Request:
    """A request that is alive, or that lies in a copy."""

    name: str
    rows: Rows
    state: int | None


@dataclass(slots=True)
class Episode:
    """Rows change hands among requests, as under memory pressure.

    `free` are the blocks that nobody owns, `saved` the requests that were retracted, by copy.
    """

    script: Script
    free: list[int]
    free_states: list[int]
    alive: list[_Request] = field(default_factory=list)
    saved: dict[str, _Request] = field(default_factory=dict)
    requests: int = 0

    @classmethod
    def of(cls, script: Script) -> Episode:
        states = range(1, script.geometry.state_rows) if script.uses_state else ()
        return cls(script, list(range(script.space.blocks)), list(states))

    def run(self) -> None:
        self._begin()
        for _ in range(TURNS):
            self.script.draw.apart()
            if not self.script.draw(TURNS):
                break
            turns = self._turns()
            turns[self._draw(len(turns))]()
        self._end()

    def _turns(self) -> list[Callable[[], None]]:
        """What can be done now; the first is what programs shrink to."""
        turns: list[Callable[[], None]] = [partial(self._retract, r) for r in self.alive]
        turns += [partial(self._resume, copy) for copy in self.saved]
        if self.free and self._can_begin():
            turns += [self._begin] * (1 + len(self.alive))
        for request in self.alive:
            turns += [partial(self._fork, request), partial(self._free, request)]
            if self.free:
                turns += [partial(self._extend, request), partial(self._extend, request, 1)]
            if self.script.can("move") and len(request.rows) > 1:
                turns.append(partial(self._move, request))
        return turns or [self._overwrite]

    # -- turns -------------------------------------------------------------------------

    def _begin(self) -> None:
        options = lengths(self.script.geometry, self._most_tokens())
        rows = self._take(options[self._draw(len(options))])
        state = self._take_state()
        self._add(_Request(f"r{self.requests}", rows, state))

    def _add(self, request: _Request) -> None:
        self.requests += 1
        self.alive.append(request)
        self.script.steps.append(Write(request.name, request.rows, request.state))

    def _extend(self, request: _Request, tokens: int = 0) -> None:
        """By `tokens`: one is decoding, 0 is any number."""
        spare = -len(request.rows) % self.script.space.block
        most = spare + len(self.free) * self.script.space.block
        options = lengths(self.script.geometry, most)
        rows = self._more(request, tokens or options[self._draw(len(options))])
        request.rows += rows
        self.script.steps.append(Extend(request.name, rows))

    def _retract(self, request: _Request) -> None:
        self.alive.remove(request)
        self._give_back(request)
        self.script.steps.append(Retract(request.name, self._save(request)))

    def _fork(self, request: _Request) -> None:
        """A copy of a request that stays alive."""
        copy = self._save(_Request(f"r{self.requests}", request.rows, request.state))
        self.requests += 1
        self.script.steps.append(Offload(request.name, copy, request.state))

    def _free(self, request: _Request) -> None:
        self.alive.remove(request)
        self._give_back(request)
        self.script.steps.append(Free((request.name,)))

    def _move(self, request: _Request) -> None:
        sources, targets = positions(self.script, len(request.rows))
        self.script.steps.append(Move(request.name, sources, targets))

    def _resume(self, copy: str) -> None:
        """Into any free rows, where there are enough; the copy is done with."""
        request = self.saved[copy]
        if not self._fits(request):
            self._overwrite()
            return
        del self.saved[copy]
        rows, state = self._take(len(request.rows)), None
        if request.state is not None:
            state = self.free_states.pop(self._draw(len(self.free_states)))
        self.alive.append(_Request(request.name, rows, state))
        self.script.steps.append(Resume(request.name, copy, rows, state))

    def _overwrite(self) -> None:
        self.script.overwrite()

    # -- the end: another request fills the pool before each one resumes ----------------

    def _end(self) -> None:
        if not self.saved:
            if not self.alive:
                self._begin()
            self._retract(self.alive[0])
        for copy in list(self.saved):
            for request in self.alive[:]:
                if not self._fits(self.saved[copy]):
                    self._free(request)
            self._fill()
            self._resume(copy)

    def _fill(self) -> None:
        """A request takes every free row, and a state, and goes."""
        state = self.free_states[0] if self.free_states else None
        filler = f"r{self.requests}"
        self.requests += 1
        self.script.steps += [Write(filler, self._all_free(), state), Free((filler,))]

    # -- rows and states ---------------------------------------------------------------

    def _all_free(self) -> Rows:
        space = self.script.space
        return space.rows(tuple(self.free), 0, len(self.free) * space.block)

    def _most_tokens(self) -> int:
        """Half of the pool, so that a few requests can live side by side."""
        space = self.script.space
        return max(1, min(len(self.free), -(-space.blocks // 2))) * space.block

    def _can_begin(self) -> bool:
        return bool(self.free_states) or not self.script.uses_state

    def _fits(self, request: _Request) -> bool:
        blocks = -(-len(request.rows) // self.script.space.block)
        return blocks <= len(self.free) and (request.state is None or bool(self.free_states))

    def _take(self, tokens: int) -> Rows:
        """Rows for `tokens` tokens out of what is free, in any arrangement."""
        space = self.script.space
        count = -(-tokens // space.block)
        shape = SHAPES[self._draw(len(SHAPES))]
        picked = arrange(shape, len(self.free), count, self._draw(4 * space.blocks))
        blocks = tuple(self.free[at] for at in picked)
        self.free = [block for block in self.free if block not in blocks]
        return space.rows(blocks, 0, tokens)

    def _more(self, request: _Request, tokens: int) -> Rows:
        """The rest of its last block, then others."""
        spare = min(tokens, -len(request.rows) % self.script.space.block)
        rest = tuple(request.rows[-1] + 1 + at for at in range(spare))
        return rest + (self._take(tokens - spare) if tokens > spare else ())

    def _take_state(self) -> int | None:
        if not self.script.uses_state:
            return None
        return self.free_states.pop(self._draw(len(self.free_states)))

    def _give_back(self, request: _Request) -> None:
        space = self.script.space
        first = self.script.geometry.page_size
        blocks = dict.fromkeys((row - first) // space.block for row in request.rows)
        self.free.extend(blocks)
        if request.state is not None:
            self.free_states.append(request.state)

    def _save(self, request: _Request) -> str:
        name = f"c{self.script.copies}"
        self.script.copies += 1
        self.saved[name] = request
        return name

    def _draw(self, count: int) -> int:
        return self.script.draw(count)


def lives(s: Script) -> None:
    """An episode of request lives in one pool."""
    Episode.of(s).run()
