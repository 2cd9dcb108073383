"""Random requests on every allocator, beside a list of who owns what."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
import torch
from allocator_cases import KINDS, make, snapshot, window_allocator

from reference_pools.allocators import HostAllocator, SlidingWindowAllocator

Tokens = list[int]


class Requests:
    """Requests that grow, share, shrink and slide; `owned` counts the owners of each id.

    `requests[i]` is a request's ids in order; `inside[i]` those that are in its window.
    """

    def __init__(self, allocator: Any, seed: int) -> None:
        self.allocator = allocator
        self.whole = isinstance(allocator, HostAllocator)
        self.slides = isinstance(allocator, SlidingWindowAllocator)
        self.random = random.Random(seed)
        self.requests: list[Tokens] = []
        self.inside: list[set[int]] = []
        self.pending: set[int] | None = None
        self.met: Counter[str] = Counter()

    @property
    def owned(self) -> Counter[int]:
        return Counter(token for request in self.requests for token in request)

    def pages(self, tokens: Any) -> set[int]:
        return {token // self.allocator.page_size for token in tokens}

    def step(self) -> None:
        verbs = [self.grow] * 4 + [self.share, self.cut, self.cut, self.end, self.group]
        if self.slides:
            verbs += [self.slide] * 2
        self.random.choice(verbs)()
        if self.random.random() < 0.01:
            self.clear()

    def grow(self) -> None:
        count = self.random.randrange(9) * (self.allocator.page_size if self.whole else 1)
        new = not self.requests or self.random.random() < 0.4
        index = len(self.requests) if new else self.random.randrange(len(self.requests))
        held = [] if new else self.requests[index]
        fits = self.fits(count, held)
        before = snapshot(self.allocator)
        taken = self.allocator.alloc(count, torch.tensor(held, dtype=torch.int64))
        assert fits == (taken is not None)
        if taken is None:
            self.met["refused"] += 1
            assert snapshot(self.allocator) == before
            return
        tokens = taken.tolist()
        assert len(tokens) == count == len(set(tokens))
        assert not set(tokens) & set(self.owned)
        assert not self.pages(tokens) & (self.pages(self.owned) - self.pages(held[-1:]))
        assert self.allocator.first <= min(tokens, default=self.allocator.first)
        self.met["handed out"] += count
        if new:
            self.requests.append([])
            self.inside.append(set())
        self.requests[index] = held + tokens
        self.inside[index] |= set(tokens)

    def fits(self, count: int, held: Tokens) -> bool:
        """Whether both spaces have the pages for it, as far as the model can tell."""
        size = self.allocator.page_size
        begun = 0 if self.whole else len(held) % size
        pages = -(-(begun + count) // size) - bool(begun)
        if not self.slides:
            return pages * size <= self.allocator.available()
        lost = bool(count and begun and not self.mapped() & set(held[-begun:]))
        self.met["window page lost"] += lost
        enough = (pages + lost) * size <= self.allocator.available_window()
        return enough and pages * size <= self.allocator.available_full()

    def share(self) -> None:
        """A new request that begins with whole pages of another."""
        if not self.requests:
            return
        index = self.random.randrange(len(self.requests))
        size = self.allocator.page_size
        pages = self.random.randrange(len(self.requests[index]) // size + 1)
        prefix = self.requests[index][: pages * size]
        self.allocator.retain(torch.tensor(prefix, dtype=torch.int32))
        self.requests.append(list(prefix))
        self.inside.append(self.mapped() & set(prefix))

    def cut(self) -> None:
        """A request gives up its last tokens, or as few as leave it whole shared pages."""
        if not self.requests:
            return
        index = self.random.randrange(len(self.requests))
        request = self.requests[index]
        keep = self.random.randrange(len(request) + 1)
        owned = self.owned
        while keep % self.allocator.page_size and owned[request[keep - 1]] > 1:
            keep -= 1
        self.give_up(index, request[keep:])

    def end(self) -> None:
        if self.requests:
            index = self.random.randrange(len(self.requests))
            self.give_up(index, self.requests[index])
            del self.requests[index], self.inside[index]

    def give_up(self, index: int, tokens: Tokens) -> None:
        self.allocator.free(torch.tensor(tokens, dtype=torch.int64))
        gone = set(tokens)
        self.requests[index] = [token for token in self.requests[index] if token not in gone]
        self.inside[index] -= gone
        if self.pending is not None:
            self.pending |= self.pages(gone) - self.pages(self.owned)

    def slide(self) -> None:
        if self.requests:
            index = self.random.randrange(len(self.requests))
            inside = sorted(self.inside[index])
            self.met["shared and in the window"] += max(self.owned[i] for i in [*inside, -1]) > 1
            left = self.random.sample(inside, self.random.randrange(len(inside) + 1))
            self.allocator.release_window(torch.tensor(left, dtype=torch.int64))
            self.inside[index] -= set(left)

    def group(self) -> None:
        if self.pending is None:
            self.allocator.begin_free_group()
            self.pending = set()
        else:
            self.allocator.end_free_group()
            self.pending = None

    def clear(self) -> None:
        self.met["cleared in a group"] += self.pending is not None
        self.allocator.clear()
        self.requests, self.inside, self.pending = [], [], None

    def mapped(self) -> set[int]:
        if not self.slides:
            return set()
        return set(self.allocator.pool.mapping.nonzero().flatten().tolist())

    def check(self) -> None:
        free_list = (self.allocator.full if self.slides else self.allocator).free_list
        owned = self.owned
        expected = [owned[row] for row in range(len(free_list.owners))]
        assert free_list.owners.tolist() == expected
        busy = len(self.pages(owned)) + len(self.pending or ())
        assert free_list.available() == self.allocator.size - busy * free_list.page_size
        if self.slides:
            self.check_window()

    def check_window(self) -> None:
        mapping = self.allocator.pool.mapping
        mapped = self.mapped()
        assert set().union(*self.inside) <= mapped <= set(self.owned)
        rows = [int(mapping[token]) for token in mapped]
        owners = self.allocator.window.free_list.owners
        assert sorted(rows) == owners.nonzero().flatten().tolist()
        size = self.allocator.page_size
        assert all(int(mapping[token]) % size == token % size for token in mapped)
        pages = {(token // size, int(mapping[token]) // size) for token in mapped}
        assert len(pages) == len({full for full, _ in pages}) == len({row for _, row in pages})
        if self.pending is None:
            window = self.allocator.pool.window.size
            assert self.allocator.available_window() == window - size * len(pages)


def run(allocator: Any, seed: int, steps: int = 150) -> Requests:
    requests = Requests(allocator, seed)
    for _ in range(steps):
        requests.step()
        requests.check()
    return requests


def finish(requests: Requests) -> None:
    """Every request ends, and everything is free."""
    while requests.requests:
        requests.end()
        requests.check()
    if requests.pending is not None:
        requests.group()
    requests.check()
    assert requests.allocator.available() == requests.allocator.size
    assert not requests.mapped()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_books_agree_with_who_owns_what(kind: str, seed: int) -> None:
    finish(run(make(kind), seed))


@pytest.mark.parametrize("page_size", [1, 4])
@pytest.mark.parametrize("seed", range(6))
def test_spaces_of_different_sizes(page_size: int, seed: int) -> None:
    run(window_allocator(40, 20, page_size), seed)


def test_runs_meet_every_case() -> None:
    met = sum((run(make("window"), seed).met for seed in range(6)), Counter())
    assert set(met) == {
        "handed out",
        "refused",
        "window page lost",
        "shared and in the window",
        "cleared in a group",
    }
    assert met["handed out"] > 300
    assert min(met.values()) > 3
