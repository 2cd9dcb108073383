"""The loop that one would write without this suite: request lives on one pool, every row
compared after each call.

It draws from `random`, makes the calls that the suite makes, and keeps what every row must
hold in a second set of tensors. It knows nothing of clauses, of whose bytes a row holds, of
diagnosis, or of shrinking; where rows are not the ids (windows, shards, virtual ids) it takes
what a reload or a move left there for right.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from conformance import Pool
from conformance.geometry import Geometry
from conformance.index_sets import CHUNK, Draw
from conformance.programs import Extend, Free, Move, Offload, Program, Resume, Retract, Write
from conformance.scenarios import lives, write_program

Rows = tuple[int, ...]


def draw_program(pool: Pool, rng: random.Random) -> tuple[Geometry, Program]:
    """A geometry and request lives as the suite draws them, but from `rng`."""
    return write_program(Draw(lambda: rng.randbytes(CHUNK)), pool, "cpu", lives)


@dataclass(slots=True)
class Layer:
    """The rows of one buffer in one layer as bytes, and what they must hold. A page-major
    buffer is `[pages, page_size, bytes]`, the others are `[rows, bytes]`."""

    name: str
    rows: Tensor
    must: Tensor
    located: bool

    def at(self, ids: Tensor) -> tuple[Tensor, ...]:
        """What to index `rows` with."""
        slots = self.rows.shape[1]
        return (ids,) if self.rows.dim() == 2 else (ids // slots, ids % slots)


@dataclass(slots=True)
class ByHand:
    """One program on one new pool."""

    pool: Any
    geometry: Geometry
    layers: list[Layer]
    placed: dict[str, Rows] = field(default_factory=dict)
    states: dict[str, int | None] = field(default_factory=dict)
    copies: dict[str, tuple[Any, list[Tensor], list[Tensor]]] = field(default_factory=dict)
    rows_checked: int = 0

    @classmethod
    def before(cls, pool: Pool, geometry: Geometry) -> ByHand:
        made = pool.make(geometry)
        layers = []
        for name, tensors in made.buffers().items():
            for tensor in tensors:
                paged = tensor.dim() == 4 and len(tensor) == geometry.page_rows
                slots = (geometry.page_size,) if paged else ()
                rows = tensor.view(len(tensor), *slots, -1).view(torch.uint8)
                rows.random_(0, 256)
                layers.append(Layer(name, rows, rows.clone(), _is_located(made, name)))
        return cls(made, geometry, layers)

    def run(self, program: Program) -> None:
        for step in program:
            match step:
                case Write(request, rows, state):
                    self.write(request, (), rows, state)
                case Extend(request, rows):
                    assert rows is not None
                    self.write(request, self.placed[request], rows, self.states[request])
                case Offload(request, copy, state):
                    self.offload(copy, self.placed[request], state)
                case Retract(request, copy):
                    self.offload(copy, self.placed.pop(request), self.states.pop(request))
                case Resume(request, copy, rows, state):
                    assert rows is not None
                    self.reload(copy, rows, state)
                    self.placed[request], self.states[request] = rows, state
                case Move(request, sources, targets):
                    held = self.placed[request]
                    self.move([held[at] for at in targets], [held[at] for at in sources])
                case Free(requests):
                    for request in requests:
                        del self.placed[request]
                case _:
                    self.randomize()

    def write(self, request: str, held: Rows, rows: Rows, state: int | None) -> None:
        for layer in self.layers:
            ids = self.ids_in(layer, torch.tensor(rows, dtype=torch.int64), state)
            new = torch.randint(256, (len(ids), layer.rows.shape[-1]), dtype=torch.uint8)
            layer.rows[layer.at(ids)] = layer.must[layer.at(ids)] = new
        self.placed[request], self.states[request] = held + rows, state

    def offload(self, copy: str, rows: Rows, state: int | None) -> None:
        ids, state_ids = torch.tensor(rows), None if state is None else torch.tensor([state])
        before = ids.clone()
        host = self.pool.get_cpu_copy(ids, mamba_indices=state_ids)
        assert torch.equal(before, ids)
        self.compare()
        tensors = host_tensors(host)
        assert all(tensor.device.type == "cpu" for tensor in tensors)
        assert sum(tensor.untyped_storage().nbytes() for tensor in tensors) < 1 << 30
        views = [tensor.view(torch.uint8) for tensor in tensors if tensor.numel()]
        saved = [layer.must[layer.at(self.ids_in(layer, ids, state))] for layer in self.layers]
        self.copies[copy] = host, saved, [*views, *(view.clone() for view in views)]

    def reload(self, copy: str, rows: Rows, state: int | None) -> None:
        ids, state_ids = torch.tensor(rows), None if state is None else torch.tensor([state])
        host, saved, bytes_ = self.copies[copy]
        half = len(bytes_) // 2
        before = ids.clone()
        self.pool.load_cpu_copy(host, ids, mamba_indices=state_ids)
        assert torch.equal(before, ids)
        assert all(map(torch.equal, bytes_[:half], bytes_[half:]))
        for layer, was in zip(self.layers, saved, strict=True):
            into = self.ids_in(layer, ids, state)
            layer.must[layer.at(into)] = layer.rows[into] if layer.located else was
        self.compare()

    def move(self, targets: list[int], sources: list[int]) -> None:
        to, from_ = torch.tensor(targets), torch.tensor(sources)
        self.pool.move_kv_cache(to, from_)
        for layer in self.layers:
            source, target = self.ids_in(layer, from_, None), self.ids_in(layer, to, None)
            tokens = layer.rows.dim() == 3 or len(layer.rows) == self.geometry.token_rows
            if tokens and not layer.located:
                layer.must[layer.at(target)] = layer.must[layer.at(source)]
            else:
                layer.must.copy_(layer.rows)
        self.compare()

    def randomize(self) -> None:
        for layer in self.layers:
            layer.rows.random_(0, 256)
            layer.must.copy_(layer.rows)

    def compare(self) -> None:
        for layer in self.layers:
            assert torch.equal(layer.rows, layer.must), layer.name
            self.rows_checked += len(layer.rows)

    def ids_in(self, layer: Layer, ids: Tensor, state: int | None) -> Tensor:
        """The rows of a layer that these tokens and this state have."""
        if layer.located:
            rows = self.pool.locate(layer.name, ids)
            return rows[rows >= 0]
        if layer.rows.dim() == 3 or len(layer.rows) == self.geometry.token_rows:
            return ids
        if len(layer.rows) == self.geometry.page_rows:
            return torch.unique_consecutive(ids // self.geometry.page_size)
        return ids[:0] if state is None else torch.tensor([state])


def _is_located(pool: Any, name: str) -> bool:
    locate = getattr(pool, "locate", None)
    return locate is not None and locate(name, torch.empty(0, dtype=torch.int64)) is not None


def host_tensors(copy: Any) -> list[Tensor]:
    halves = [copy, *copy.parts.values(), *([copy.state] if copy.state is not None else [])]
    return [
        chunk
        for half in halves
        for layers in half.chunks.values()
        for layer in layers
        for chunk in layer
    ]
