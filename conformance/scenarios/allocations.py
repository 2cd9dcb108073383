"""Allocators: requests that come, grow, share, slide, are retracted and go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from conformance.allocator import Allocator
from conformance.index_sets import lengths
from conformance.programs import (
    BEGIN_GROUP,
    CLEAR,
    COMPACT,
    END_GROUP,
    SCRIBBLE_IDS,
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
from conformance.scenarios.script import Script

TURNS = 10
"""The most turns of an episode, its end not counted."""


@dataclass(slots=True)
class Allocations:
    """An episode that counts tokens as an allocator must. Where an allocation turns out not
    to fit, because a second id space is full, later steps of its request do nothing."""

    script: Script
    allocator: Allocator
    page: int
    size: int
    alive: dict[str, int] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    slid: dict[str, int] = field(default_factory=dict)
    saved: dict[str, tuple[str, int]] = field(default_factory=dict)
    requests: int = 0

    @classmethod
    def of(cls, script: Script) -> Allocations:
        allocator, geometry = script.front, script.geometry
        assert isinstance(allocator, Allocator)
        if allocator.kind == "slots":
            return cls(script, allocator, 1, geometry.state_size)
        return cls(script, allocator, geometry.page_size, geometry.size)

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
        turns: list[Callable[[], None]] = [self._begin] * 2
        if self.alive:
            turns += [self._free, self._extend, self._decode, self._free_tail]
        turns += [self._exhaust, self._nothing, self._clear, self._scribble]
        if "offload" in self.allocator.offers:
            turns += [self._retract] if self.alive else []
            turns += [self._resume] if self.saved else []
        if "groups" in self.allocator.offers and self.alive:
            turns += [self._group, self._group]
        if "sharing" in self.allocator.offers and self._with_pages(self.slid):
            turns += [self._share] * 3
        if "window" in self.allocator.offers and self._with_pages(self.shared):
            turns += [self._slide] * 3
        if "virtual" in self.allocator.offers:
            turns += [self._compact]
        return turns

    # -- turns -------------------------------------------------------------------------

    def _begin(self) -> None:
        self._grow(self._new(), self._length(self.size // 2 or 1))

    def _extend(self) -> None:
        self._grow(self._one(), self._length(self.size // 2 or 1))

    def _decode(self) -> None:
        self._grow(self._one(), self._page_of_host(1))

    def _grow(self, request: str, tokens: int) -> None:
        self._step(Extend(request, tokens=tokens))
        self.alive[request] = self.alive.get(request, 0) + tokens

    def _exhaust(self) -> None:
        """More than is free, by one or by many; where pages are shared it may fit after all."""
        free = self.size - sum(map(self._whole_pages, self.alive.values()))
        tokens = max(0, free) + 1 + self._draw(3) * self.page
        if self.alive and self._draw(2):
            request = self._one()
            spare = self._whole_pages(self.alive[request]) - self.alive[request]
            self._step(Extend(request, tokens=self._page_of_host(spare + tokens)))
            return
        request = self._new()
        self._step(Extend(request, tokens=self._page_of_host(tokens)))
        self._step(Free((request,)))

    def _nothing(self) -> None:
        """A request without tokens."""
        request = self._new()
        self._step(Extend(request, tokens=0))
        self._step(Free((request,)))

    def _free(self) -> None:
        """One request goes, or in one call two that share nothing."""
        going = [self._one()]
        others = [r for r in self.alive if r != going[0] and r not in self.shared]
        if going[0] not in self.shared and others and self._draw(4) == 3:
            going.append(others[self._draw(len(others))])
        for request in going:
            self._forget(request)
        self._step(Free(tuple(going)))

    def _free_tail(self) -> None:
        """The request keeps its first pages."""
        request = self._one()
        pages = self.alive[request] // self.page
        keep = self.page * self._draw(pages + 1)
        if not keep:
            self._forget(request)
        else:
            self.alive[request] = keep
            self.slid[request] = min(keep, self.slid.get(request, 0))
        self._step(Free((request,), keep))

    def _group(self) -> None:
        """One more comes, and a free group, in which some requests go and others come where
        there is room without those, ends or is cleared away."""
        self._begin()
        room = self.size - sum(map(self._whole_pages, self.alive.values()))
        self._step(BEGIN_GROUP)
        for _ in range(1 + self._draw(len(self.alive))):
            if self.alive:
                self._free()
            if room > 0 and self._draw(8) == 7:
                tokens = self._page_of_host(1 + self._draw(room))
                self._grow(self._new(), tokens)
                room -= self._whole_pages(tokens)
            if self._draw(4) == 3:
                self._step(SCRIBBLE_IDS)
        if self._draw(4) == 3:
            self._clear()
        else:
            self._step(END_GROUP)

    def _share(self) -> None:
        """A second request begins with the first pages of another."""
        request = self._one(self._with_pages(self.slid))
        pages = self.alive[request] // self.page
        tokens, new = self.page * (1 + self._draw(pages)), self._new()
        self._step(Share(request, new, tokens))
        self.alive[new] = tokens
        self.shared |= {request, new}

    def _slide(self) -> None:
        """The window leaves the next pages behind, at once or, the last one, in two parts."""
        request = self._one(self._with_pages(self.shared))
        start = self.slid.get(request, 0)
        pages = (self.alive[request] - start) // self.page
        stop = start + self.page * (1 + self._draw(pages))
        middle = stop - self._draw(self.page)
        self._step(Slide(request, start, middle))
        if middle < stop:
            self._step(Slide(request, middle, stop))
        self.slid[request] = stop

    def _clear(self) -> None:
        self._step(CLEAR)
        self.alive, self.shared, self.slid = {}, set(), {}

    def _scribble(self) -> None:
        self._step(SCRIBBLE_IDS)

    def _compact(self) -> None:
        self._step(COMPACT)

    def _retract(self) -> None:
        request = self._one()
        copy = f"c{self.script.copies}"
        self.script.copies += 1
        self.saved[copy] = request, self.alive[request]
        self._forget(request)
        self._step(Retract(request, copy))

    def _resume(self) -> None:
        copies = list(self.saved)
        copy = copies[self._draw(len(copies))]
        _, tokens = self.saved.pop(copy)
        request = self._new()
        self.alive[request] = tokens
        self._step(Resume(request, copy))

    # -- the end: everybody goes or is cleared away, and one request gets everything ------

    def _end(self) -> None:
        if "offload" in self.allocator.offers and self._draw(8):
            self._come_back()
        if self._draw(4) == 3:
            self._clear()
        while self.alive:
            self._free()
        self._grow(self._new(), self.size)

    def _come_back(self) -> None:
        """A request is retracted, another fills its rows, it resumes in others, and one more
        comes."""
        if not self.alive:
            self._begin()
        self._retract()
        filler = self._new()
        self._grow(filler, self.page)
        self._resume()
        self._begin()

    # -- drawing -----------------------------------------------------------------------

    def _length(self, most: int) -> int:
        options = lengths(self.script.geometry, most)
        return self._page_of_host(options[self._draw(len(options))])

    def _page_of_host(self, tokens: int) -> int:
        """Host memory is handed out by whole pages."""
        return self._whole_pages(tokens) if self.allocator.kind == "host" else tokens

    def _whole_pages(self, tokens: int) -> int:
        return -(-tokens // self.page) * self.page

    def _new(self) -> str:
        self.requests += 1
        return f"r{self.requests - 1}"

    def _one(self, among: Sequence[str] = ()) -> str:
        alive = among or list(self.alive)
        return alive[self._draw(len(alive))]

    def _with_pages(self, without: Collection[str]) -> list[str]:
        """Requests that have a whole page in the window, but those of `without`."""
        return [
            request
            for request, tokens in self.alive.items()
            if tokens - self.slid.get(request, 0) >= self.page and request not in without
        ]

    def _forget(self, request: str) -> None:
        del self.alive[request]
        self.slid.pop(request, None)
        self.shared.discard(request)

    def _step(self, step: Step) -> None:
        self.script.steps.append(step)

    def _draw(self, count: int) -> int:
        return self.script.draw(count)


def allocations(s: Script) -> None:
    """An episode of allocations."""
    Allocations.of(s).run()


def grouped(s: Script) -> None:
    """An episode that begins with a free group."""
    episode = Allocations.of(s)
    episode._begin()
    episode._begin()
    if "groups" in episode.allocator.offers:
        episode._group()
    episode.run()


def shared(s: Script) -> None:
    """An episode that begins with a shared prefix."""
    episode = Allocations.of(s)
    episode._begin()
    if "sharing" in episode.allocator.offers:
        episode._share()
    episode.run()


def slid(s: Script) -> None:
    """An episode that begins with a window that slides."""
    episode = Allocations.of(s)
    episode._begin()
    if "window" in episode.allocator.offers:
        episode._slide()
    episode.run()


# -- illegal frees: each between two legal allocations -----------------------------------


def _illegal_free(s: Script, *illegal: Step) -> None:
    episode = Allocations.of(s)
    episode._begin()
    if s.draw(2):
        episode._begin()
    s.steps.extend(illegal)
    episode._end()


def double_free(s: Script) -> None:
    """Ids that were freed are freed again, perhaps in the free group that they went in."""
    episode = Allocations.of(s)
    episode._begin()
    if s.draw(2):
        episode._begin()
    grouped = "groups" in episode.allocator.offers and s.draw(4) == 3
    freed = Free((episode._one(),))
    episode._forget(freed.requests[0])
    s.steps += [BEGIN_GROUP] if grouped else []
    s.steps += [freed, Refuse(freed)]
    s.steps += [END_GROUP] if grouped else []
    episode._end()


def duplicate_free(s: Script) -> None:
    """Ids twice in one call."""
    _illegal_free(s, Refuse(Free(("r0", "r0"))))


def foreign_free(s: Script) -> None:
    """Ids that nobody got: negative, or past the end."""
    assert isinstance(s.front, Allocator)
    slots = s.front.kind == "slots"
    end = s.geometry.state_rows if slots else s.geometry.token_rows
    values = (end + 300, -1, -end)
    row = values[s.draw(len(values))]
    _illegal_free(s, Claim("bad", (row,)), Refuse(Free(("bad",))))
