"""Lives of requests on a host tier: written, backed up, overwritten, loaded elsewhere, dropped,
several at once, while copies are in flight."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

from conformance.host_tier import HostTier
from conformance.programs import (
    CLOSE,
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
    Which,
    Write,
)
from conformance.scenarios.script import Script
from conformance.step_text import Rows

MOST = 3
"""The most requests at once."""

Pages = tuple[int, ...]
Life = Iterator[None]
"""The steps of one request; others go on where it yields."""


@dataclass(slots=True)
class TierEpisode:
    """Requests that share the pages and states of a pool. `free` are those that no request
    has, and that no copy in flight uses; `pages` says how many pages a request has."""

    script: Script
    tier: HostTier
    free: list[int]
    free_states: list[int]
    overlaps: bool = False
    taken: dict[str, Pages] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    states: dict[str, int | None] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, script: Script, *, overlaps: bool = False) -> TierEpisode:
        assert isinstance(script.front, HostTier)
        geometry = script.geometry
        pages = range(1, geometry.size // geometry.page_size + 1)
        states = range(1, geometry.state_rows) if script.front.carries_state else ()
        return cls(script, script.front, list(pages), list(states), overlaps)

    def live(self) -> None:
        """Up to `MOST` lives, in turns."""
        lives = 1 + self.draw(min(MOST, len(self.free)))
        most = max(1, len(self.free) // (lives + 1))
        running = [self._life(1 + self.draw(most)) for _ in range(lives)]
        while running:
            life = running[self.draw(len(running))]
            if next(life, self) is self:
                running.remove(life)

    def put_away(self, pages: int) -> str:
        """A new request, backed up and gone from the device."""
        request = self.written(pages)
        self.add(BackUp(request))
        self._await("backup", request)
        self.release(request)
        return request

    def come_back(self, request: str) -> None:
        """Load it somewhere, where nothing is in flight."""
        self.load(request)
        self._await("load", request)
        self.release(request)

    # -- one life ----------------------------------------------------------------------

    def _life(self, pages: int) -> Life:
        request = self.written(pages)
        yield
        self.add(BackUp(request))
        yield
        dropped = self.draw(4) == 3
        if dropped:
            self._drop_in_flight(request)
            yield
        in_order = dropped or not (self.overlaps and self.draw(2))
        if in_order:
            self._await("backup", request)
            yield
            self._leave(request)
            yield
        if not dropped:
            dropped = yield from self._loaded(request)
        if in_order and not dropped and self.draw(4) == 3:
            self.release(request)
            dropped = yield from self._loaded(request)
        if not in_order:
            self._await("backup", request)
        if request in self.loaded and self.draw(2):
            self._await("load", request)
        if dropped or self.draw(3):
            self.drop(request)
        self.leave(request)

    def _leave(self, request: str) -> None:
        """Its rows are given to somebody else, whom the stream may read there last."""
        pages = self.release(request)
        if self.draw(4):
            other = self._write(pages, self.states[request])
            if self.draw(2):
                self.add(Read(other))

    def _loaded(self, request: str) -> Generator[None, None, bool]:
        """Load it and look at it; whether its host rows were perhaps dropped meanwhile."""
        self.load(request)
        yield
        forked = self._forked(request) if self.overlaps and self.draw(4) else ""
        dropped = self.draw(4) == 3
        if dropped:
            self._drop_in_flight(request)
            yield
        if "layers" not in self.tier.lacks and not self.draw(2):
            self.add(Use(request))
        else:
            self._await("load", request)
            self.add(Read(request))
        yield
        if forked:
            self._await("backup", forked)
            self.add(Load(forked, self._rows(self.taken[request])))
            self._await("load", forked)
            self.drop(forked)
        return dropped

    def load(self, request: str) -> None:
        """Into the rows that it has, or where there is room; its state perhaps elsewhere."""
        if request not in self.taken:
            self.taken[request] = self._take(self.pages[request])
        state = self.states[request]
        if state and self.free_states and not self.overlaps and self.draw(2):
            self.free_states.append(state)
            state = self.states[request] = self._state()
        self.add(Load(request, self._rows(self.taken[request]), state))
        self.loaded.add(request)

    def _forked(self, request: str) -> str:
        """Another request, whose tokens are those that are being loaded, is backed up."""
        other = self._name()
        self.add(Claim(other, self._rows(self.taken[request])))
        self.add(BackUp(other))
        return other

    def _drop_in_flight(self, request: str) -> None:
        """Its host rows are given back, and taken by another that wants all there are, or few."""
        self.add(Drop(request))
        if self.free:
            other = self.written(len(self.free) if self.draw(2) else 1)
            self.add(BackUp(other))
            self._await("backup", other)
            if self.draw(4):
                self.load(other)
                self._await("load", other)
            self.drop(other)
            self.leave(other)

    # -- steps -------------------------------------------------------------------------

    def draw(self, count: int) -> int:
        return self.script.draw(count)

    def add(self, step: Step) -> None:
        self.script.steps.append(step)

    def written(self, pages: int) -> str:
        """A new request in pages of its own; perhaps with state."""
        state = self._state() if self.draw(2) else None
        taken = self._take(pages)
        request = self._write(taken, state)
        self.taken[request], self.pages[request], self.states[request] = taken, pages, state
        return request

    def drop(self, request: str) -> None:
        """Give its host rows back; a second time, that must be refused."""
        self.add(Drop(request))
        if self.draw(2):
            self.add(Refuse(Drop(request)))

    def release(self, request: str) -> Pages:
        """Others may have its pages; nothing of them is in flight. It keeps its state."""
        pages = self.taken.pop(request)
        self.free += pages
        return pages

    def leave(self, request: str) -> None:
        """It is over."""
        if request in self.taken:
            self.release(request)
        state = self.states.pop(request)
        self.free_states += [] if state is None else [state]

    def _write(self, pages: Pages, state: int | None) -> str:
        request = self._name()
        self.add(Write(request, self._rows(pages), state))
        return request

    def _name(self) -> str:
        self.script.requests += 1
        return f"r{self.script.requests - 1}"

    def _await(self, which: Which, request: str) -> None:
        is_asked = "polling" not in self.tier.lacks and self.draw(3) == 2
        self.add(Poll(which, request) if is_asked else Await(which, request))

    def _take(self, count: int) -> Pages:
        """Free pages, in some order."""
        first = self.draw(len(self.free) - count + 1)
        pages = self.free[first : first + count]
        del self.free[first : first + count]
        return tuple(pages[::-1] if self.draw(2) else pages)

    def _state(self) -> int | None:
        if not self.free_states:
            return None
        return self.free_states.pop(self.draw(len(self.free_states)))

    def _rows(self, pages: Sequence[int]) -> Rows:
        size = self.script.geometry.page_size
        return tuple(page * size + slot for page in pages for slot in range(size))


def tiered(s: Script) -> None:
    """Requests whose copies overlap those of others, but not their own."""
    TierEpisode.of(s).live()


def overlapped(s: Script) -> None:
    """Requests whose own backups and loads overlap too."""
    TierEpisode.of(s, overlaps=True).live()


def closed(s: Script) -> None:
    """The tier goes away while loads are in flight."""
    episode = TierEpisode.of(s)
    away = [episode.put_away(1) for _ in range(1 + s.draw(min(4, len(episode.free))))]
    for request in away:
        episode.load(request)
    if s.draw(2):
        episode.add(Await("load", away[0]))
    episode.add(CLOSE)


def filled(s: Script) -> None:
    """More requests than the host may have room for; some come back."""
    episode = TierEpisode.of(s)
    backed_up = []
    for _ in range(len(episode.free) + s.draw(2 * len(episode.free))):
        backed_up.append(episode.put_away(2 if s.draw(4) == 3 and len(episode.free) > 1 else 1))
    for _ in range(min(2, len(backed_up))):
        episode.drop(backed_up.pop(s.draw(len(backed_up))))
    last = episode.put_away(min(2, len(episode.free)))
    for request in (last, *backed_up[: s.draw(4)]):
        episode.come_back(request)
