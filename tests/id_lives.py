"""A program of allocations followed without an allocator: how many pages each request holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from conformance import Allocator
from conformance.geometry import Geometry
from conformance.programs import (
    BEGIN_GROUP,
    CLEAR,
    COMPACT,
    END_GROUP,
    SCRIBBLE_IDS,
    Bare,
    Extend,
    Free,
    Program,
    Resume,
    Retract,
    Share,
    Slide,
    Step,
)

Pages = tuple[int, ...]

NEEDED: dict[Step, str] = {BEGIN_GROUP: "groups", END_GROUP: "groups", COMPACT: "virtual"}
IN_A_GROUP = (SCRIBBLE_IDS, END_GROUP, CLEAR)
"""What may stand in a free group beside frees and allocations; the last two end it."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Before step `number`, beside an allocator that hands out new pages one after another:
    the tokens and pages of each request, the tokens of each copy, and what left the window.

    A step for which there is no room, or whose request has fewer tokens, changes nothing.
    """

    number: int
    step: Step
    page: int
    size: int
    tokens: dict[str, int] = field(default_factory=dict)
    pages: dict[str, Pages] = field(default_factory=dict)
    copies: dict[str, tuple[str, int]] = field(default_factory=dict)
    in_group: bool = False
    used: int = 0

    @property
    def owners(self) -> Counter[int]:
        """How many requests each page belongs to."""
        return Counter(page for pages in self.pages.values() for page in pages)

    def lacks(self, request: str, tokens: int) -> int:
        """How many pages more `request` would need for `tokens` tokens more."""
        held = self.tokens.get(request, 0)
        return -(-(held + tokens) // self.page) - len(self.pages.get(request, ()))

    def fits(self, request: str, tokens: int) -> bool:
        """Whether there are pages for `tokens` more, in an id space of its own."""
        return self.lacks(request, tokens) <= self.size // self.page - len(self.owners)

    @property
    def extends(self) -> tuple[str, int] | None:
        """The request that this step gives tokens, and how many."""
        match self.step:
            case Extend(request, None, tokens):
                return request, tokens
            case Resume(request, copy) if copy in self.copies:
                return request, self.copies[copy][1]
        return None

    def after(self, step: Step) -> Moment:
        """The next moment, at which `step` will run."""
        tokens, pages, copies = self.tokens.copy(), self.pages.copy(), self.copies.copy()
        used, in_group = self.used, self.in_group
        match self.step:
            case Extend() | Resume() if self.extends and self.fits(*self.extends):
                request, more = self.extends
                fresh = self.lacks(request, more)
                tokens[request] = tokens.get(request, 0) + more
                pages[request] = (*pages.get(request, ()), *range(used, used + fresh))
                used += fresh
            case Share(request, new, shared) if tokens.get(request, 0) >= shared:
                tokens[new], pages[new] = shared, pages[request][: shared // self.page]
            case Retract(request, copy) if request in tokens:
                copies[copy] = request, tokens[request]
                del tokens[request], pages[request]
            case Free(requests, start):
                for request in tokens.keys() & set(requests):
                    tokens[request] = min(tokens[request], start)
                    pages[request] = pages[request][: start // self.page]
                    if not start:
                        del tokens[request], pages[request]
            case Bare("begin group" | "end group"):
                in_group = self.step == BEGIN_GROUP
            case Bare("clear"):
                tokens, pages, in_group = {}, {}, False
        return replace(
            self,
            number=self.number + 1,
            step=step,
            tokens=tokens,
            pages=pages,
            copies=copies,
            in_group=in_group,
            used=used,
        )


def moments(allocator: Allocator, geometry: Geometry, program: Program) -> Iterator[Moment]:
    """Every step, and what there is before it."""
    page, size = geometry.page_size, geometry.size
    if allocator.kind == "slots":
        page, size = 1, geometry.state_size
    moment = Moment(0, program.steps[0], page, size)
    yield moment
    for step in program.steps[1:]:
        moment = moment.after(step)
        yield moment


def problem(allocator: Allocator, moment: Moment) -> str:
    """What is illegal about a step of allocations; "" if nothing is."""
    step, page, offers = moment.step, moment.page, allocator.offers
    if moment.in_group and not isinstance(step, Free | Extend) and step not in IN_A_GROUP:
        return "neither free nor allocation, in a free group"
    match step:
        case Extend(_, rows, tokens):
            whole = allocator.kind != "host" or tokens % page == 0
            return "" if rows is None and tokens >= 0 and whole else "not a number of tokens"
        case Free(requests, start):
            twice = len(set(requests)) < len(requests)
            return "twice, or not from the begin of a page" if twice or start % page else ""
        case Share(request, new, tokens):
            if "sharing" not in offers or new in moment.tokens or new == request:
                return "the allocator does not share, or the new request is alive"
            return "part of a page is shared" if tokens <= 0 or tokens % page else ""
        case Slide(request, start, stop):
            if "window" not in offers or not 0 <= start < stop:
                return "the allocator has no window, or nothing slides"
            slid = moment.pages.get(request, ())[start // page : -(-stop // page)]
            return "a shared page slides" if any(moment.owners[p] > 1 for p in slid) else ""
        case Retract(_, copy):
            legal = "offload" in offers and copy not in moment.copies
            return "" if legal else "the allocator does not offload, or the copy exists"
        case Resume(request, _, rows, state):
            legal = request not in moment.tokens and (rows, state) == (None, None)
            return "" if legal else "alive already, or rows are named"
        case Bare():
            needed = NEEDED.get(step)
            if step == END_GROUP and not moment.in_group:
                return "no group is open"
            return "" if needed is None or needed in offers else f"the allocator has no {needed}"
    return "no step of an allocator"
