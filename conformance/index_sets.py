"""Strategies: which rows and which state a request occupies, and how their ids are passed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Literal

from hypothesis import strategies as st

from conformance.geometry import Geometry
from conformance.programs import PLAIN, Form
from conformance.step_text import Rows

CHUNK = 6


class Draw:
    """Whole numbers out of drawn bytes: `draw(count)` is below `count`, and shrinks to 0.

    Bytes are drawn by the chunk, since one draw costs about as much as a call of a small
    pool. What belongs together begins a chunk (`apart`), so that it can be deleted whole.
    """

    def __init__(self, chunk: Callable[[], bytes]) -> None:
        self._chunk = chunk
        self._left = b""

    @classmethod
    def of(cls, draw: Callable[[st.SearchStrategy[bytes]], bytes]) -> Draw:
        """Out of what Hypothesis gives to a composite strategy."""
        return cls(lambda: draw(_CHUNKS))

    def __call__(self, count: int) -> int:
        if count <= 1:
            return 0
        width = (count - 1).bit_length() + 7 >> 3
        if len(self._left) < width:
            self._left = self._chunk()
        taken, self._left = self._left[:width], self._left[width:]
        return int.from_bytes(taken, "big") % count

    def apart(self) -> None:
        """What is drawn next begins a chunk."""
        self._left = b""


_CHUNKS = st.binary(min_size=CHUNK, max_size=CHUNK)

Shape = Literal["contiguous", "reversed", "strided", "shuffled"]
SHAPES: tuple[Shape, ...] = ("contiguous", "reversed", "strided", "shuffled")

FORMS = (
    PLAIN,
    Form(dtype="int32"),
    Form(strided=True),
    Form(on_host=True),
    Form(dtype="int32", on_host=True, strided=True),
)


@dataclass(frozen=True, slots=True)
class Space:
    """Where the index sets of one geometry live.

    A set is made of blocks: tokens where any order of rows is legal, else whole pages, the
    first entered at a `start` slot and the last left early.
    """

    geometry: Geometry
    paged: bool

    @property
    def block(self) -> int:
        return self.geometry.page_size if self.paged else 1

    @property
    def blocks(self) -> int:
        return self.geometry.size // self.block

    def rows(self, blocks: tuple[int, ...], start: int, length: int) -> Rows:
        """The first `length` rows of `blocks`, entered at slot `start`."""
        size, first = self.block, self.geometry.page_size
        rows = [first + b * size + slot for b in blocks for slot in range(size)]
        return tuple(rows[start : start + length])


@lru_cache(maxsize=4096)
def lengths(geometry: Geometry, most: int) -> tuple[int, ...]:
    """Lengths worth trying up to `most`, short ones first: all small ones, and one less, as
    many and one more than each multiple of the page and of the chunk."""
    near = {
        k * step + off
        for step in {geometry.page_size, min(geometry.chunk_tokens, most)}
        for k in range(1, most // step + 1)
        for off in (-1, 0, 1)
    }
    return tuple(sorted(n for n in near | {1, 3, most} if 0 < n <= most))


def draw_rows(draw: Draw, space: Space, *, shape: Shape | None = None) -> tuple[Rows, int]:
    """Rows of a new index set, and its start slot. Shrinks to one row, then to low ids."""
    start = draw(space.block) if space.paged else 0
    options = lengths(space.geometry, space.geometry.size - start)
    length = options[draw(len(options))]
    return draw_rows_like(draw, space, length, start, shape=shape), start


def draw_rows_like(
    draw: Draw, space: Space, length: int, start: int, *, shape: Shape | None = None
) -> Rows:
    """`length` rows that begin at slot `start`, anywhere in the pool."""
    count = -(-(start + length) // space.block)
    if shape is None:
        shape = SHAPES[draw(len(SHAPES))]
    seed = draw(4 * space.blocks)
    return space.rows(arrange(shape, space.blocks, count, seed), start, length)


def arrange(shape: Shape, blocks: int, count: int, seed: int) -> tuple[int, ...]:
    """`count` different blocks out of `blocks`; seed 0 is the lowest arrangement."""
    if shape == "strided" and count > 1:
        stride = min(3, max(1, (blocks - 1) // (count - 1)))
        first = seed % (blocks - stride * (count - 1))
        return tuple(first + stride * i for i in range(count))
    if shape == "shuffled" and count > 1:
        return _scattered(blocks, count, seed)
    first = seed % (blocks - count + 1)
    run = tuple(range(first, first + count))
    return run[::-1] if shape == "reversed" else run


def _scattered(blocks: int, count: int, seed: int) -> tuple[int, ...]:
    """A sample without order: a walk by a stride prime to `blocks`, with neighbours swapped."""
    strides = [s for s in range(1, blocks) if gcd(s, blocks) == 1]
    stride, first = strides[seed % len(strides)], seed % blocks
    walk = [(first + stride * i) % blocks for i in range(count)]
    swap = 1 + seed % (count - 1)
    walk[0], walk[swap] = walk[swap], walk[0]
    return tuple(walk)


def draw_form(draw: Draw, *, has_state: bool) -> Form:
    """How the ids are passed; the plain form first."""
    choice = draw(len(FORMS) * (1 + has_state))
    form = FORMS[choice % len(FORMS)]
    if choice < len(FORMS):
        return form
    return Form(form.dtype, form.on_host, form.strided, scalar_state=True)


def draw_state(draw: Draw, geometry: Geometry) -> int:
    """A state id; never the reserved row 0."""
    return 1 + draw(geometry.state_size)
