"""Calls of the operations that pools use, as `run(device)`: for shapes, dtypes, odd arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

ALL = slice(None)
Run = Callable[[str], Any]
DTYPES = (
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
)


def rows_of(dtype: torch.dtype, *shape: int) -> Tensor:
    numel = 1
    for extent in shape:
        numel *= extent
    return (torch.arange(numel).reshape(shape) % 7).to(dtype)


def calls(rows: Tensor) -> Iterator[tuple[str, Callable[[Tensor], Any]]]:
    """By name, functions of `rows` [6, 4, 3] on a device; host tensors in them are moved."""

    def on(tensor: Tensor, like: Tensor) -> Tensor:
        return tensor.to(like.device)

    ids = torch.tensor([4, 0, 4, -1])
    grid = torch.tensor([[1, 2], [3, 5]])
    mask = torch.tensor([True, False, True, True, False, False])
    full = rows > 3
    few = rows_of(rows.dtype, 4, 4, 3)
    places = torch.tensor([[[0, 1, 2]] * 4] * 6)
    yield "index", lambda t: t[on(ids, t)]
    yield "index int32", lambda t: t[on(ids.int(), t)]
    yield "index host ids", lambda t: t[ids]
    yield "index grid", lambda t: t[on(grid, t)]
    yield "index none", lambda t: t[on(ids[:0], t)]
    yield "index pair", lambda t: t[on(ids, t), on(ids % 4, t)]
    yield "index apart", lambda t: t[on(ids, t), :, on(ids % 3, t)]
    yield "index late axis", lambda t: t[:, on(ids % 4, t)]
    yield "index mask", lambda t: t[on(mask, t)]
    yield "index whole mask", lambda t: t[on(full, t)]
    yield "index mask and ids", lambda t: t[on(mask, t), on(ids[:3] % 4, t)]
    yield "index transposed", lambda t: t.transpose(0, 2)[on(ids % 3, t)]
    yield "index scalar id", lambda t: t[on(torch.tensor(2), t)]
    yield "index scalar mask", lambda t: t[on(torch.tensor(True), t)]
    yield "index_put_", lambda t: t.index_put_((on(ids[:3], t),), on(few[:3], t))
    yield "index_put", lambda t: t.index_put((on(ids[:3], t),), on(few[:3], t))
    yield "index_put_ broadcast", lambda t: t.index_put_((on(ids, t),), on(few[0, 0], t))
    yield "index_put_ pair", lambda t: t.index_put_((on(ids, t), on(ids % 4, t)), on(few[0, 0], t))
    yield (
        "setitem late axis",
        lambda t: t.__setitem__((ALL, on(grid[0], t)), on(few[0, :2], t)) or t,
    )
    yield "index_put_ mask", lambda t: t.index_put_((on(mask, t),), on(few[:3], t))
    yield "index_put_ mask one", lambda t: t.index_put_((on(full, t),), on(few[0, 0, 1], t))
    if rows.dtype is not torch.bool:
        yield (
            "index_put_ accumulate",
            lambda t: t.index_put_((on(ids, t),), on(few, t), accumulate=True),
        )
        yield "scatter_add_", lambda t: t.scatter_add_(2, on(places, t), on(rows, t))
        yield "max", lambda t: (t.max(), t.min(), torch.aminmax(t), torch.aminmax(t, dim=0))
        yield "sum", lambda t: (t.sum(), t.sum(0), t.long().cumsum(0))
        yield "arithmetic", lambda t: (t + t, t * 2, t - 1, t // 3, t % 3, t.float() / 2)
    yield "setitem number", lambda t: t.__setitem__(1, 1) or t
    yield "setitem slice", lambda t: t.__setitem__(slice(1, 4), t[2:5].clone()) or t
    yield "copy_", lambda t: t[:4].copy_(on(few, t))
    yield "copy_ broadcast", lambda t: t.copy_(on(few[0, 0], t))
    yield "copy_ convert", lambda t: t.copy_(on(rows.float(), t))
    yield "copy_ overlap", lambda t: t[:, 1:].copy_(t[:, :3].clone())
    yield "slice", lambda t: (t[1:5:2], t[:, -2:], t[..., 1], t.narrow(0, 2, 3), t.select(1, 2))
    yield "split", lambda t: (*t.split([1, 5]), *t.chunk(2), *t.unbind(1))
    yield "view", lambda t: (t.view(24, 3), t.reshape(-1), t.flatten(1), t.view(2, 3, 4, 3))
    yield "view bytes", lambda t: t.view(torch.uint8)
    yield "expand", lambda t: (t[:1].expand(5, 4, 3), t.permute(2, 0, 1), t.unsqueeze(1), t.mT)
    yield "contiguous", lambda t: (t.transpose(0, 1).contiguous(), t.transpose(1, 2).reshape(18, 4))
    yield "cat", lambda t: torch.cat([t, t[:2]])
    yield "cat last", lambda t: torch.cat([t, t.transpose(0, 1).contiguous().transpose(0, 1)], -1)
    yield "cat dtypes", lambda t: torch.cat([t, t.double()])
    yield "stack", lambda t: torch.stack([t, t], 1)
    yield "clone", lambda t: (t.clone(), t.transpose(0, 1).clone(), t[:, ::2].clone())
    yield "equal", lambda t: (torch.equal(t, t.clone()), torch.equal(t, t[1:]))
    yield "fill_", lambda t: (t[1:3].fill_(1), t.zero_(), t.fill_(on(torch.tensor(1), t)))
    yield "gather", lambda t: torch.gather(t, 2, on(places, t))
    yield "scatter", lambda t: t.scatter(2, on(places, t), on(rows, t))
    yield "scatter number", lambda t: t.scatter_(0, on(places[:1], t), 1)
    yield "index_select", lambda t: t.index_select(1, on(ids[:3] % 4, t))
    yield "index_copy_", lambda t: t.index_copy_(0, on(ids[:2], t), on(few[:2], t))
    yield "masked_fill", lambda t: t.masked_fill(on(full, t), 1)
    yield "where", lambda t: torch.where(on(full, t), t, t.flip(0))
    yield "compare", lambda t: (t == t[0], t != 1, t > 2, t <= t, (t > 1) & (t < 5), ~(t > 1))
    yield "reduce", lambda t: ((t > 3).any(), (t > 3).all(0), t.argmax() if t.ndim == 9 else 0)
    yield "nonzero", lambda t: (t.nonzero(), (t > 2).sum(), torch.count_nonzero(t))
    yield "roll", lambda t: (t.roll(1, 0), t.flip(1), t.repeat(2, 1, 1))
    yield "to", lambda t: (t.to(torch.float64), t.to(torch.int16), t.to(torch.bool), t.to(t))
    yield "to host", lambda t: (t.cpu(), t.transpose(0, 1).cpu(), t.to("cpu", torch.float32))
    yield "item", lambda t: (t[1, 1, 1].item(), t.tolist(), bool(t[0, 0, 1]))
    yield "empty", lambda t: (t[:0] + t[:0], torch.cat([t[:0], t]), t[:0].clone(), t[:0].sum())
    yield "like", lambda t: (torch.zeros_like(t), torch.ones_like(t), t.new_full((2,), 1))


FACTORIES: tuple[tuple[str, Run], ...] = (
    ("arange", lambda d: torch.arange(5, device=d)),
    ("arange steps", lambda d: torch.arange(7, 2, -2, device=d)),
    ("arange float", lambda d: torch.arange(0, 1, 0.3, device=d)),
    ("arange float end", lambda d: torch.arange(3.5, device=d)),
    ("arange dtype", lambda d: torch.arange(1, 5, dtype=torch.int32, device=d)),
    ("arange bfloat16", lambda d: torch.arange(4, dtype=torch.bfloat16, device=d)),
    ("arange floats to ints", lambda d: torch.arange(0.5, 4.2, 1.7, dtype=torch.int64, device=d)),
    ("arange none", lambda d: torch.arange(0, device=d)),
    ("zeros", lambda d: torch.zeros(2, 3, device=d)),
    ("ones", lambda d: torch.ones(3, dtype=torch.int16, device=d)),
    ("full", lambda d: torch.full((2,), 7, device=d)),
    ("tensor", lambda d: torch.tensor([[1, 2], [3, 4]], device=d)),
    ("eye", lambda d: torch.eye(3, device=d)),
    ("linspace", lambda d: torch.linspace(0, 1, 5, device=d)),
    ("bincount", lambda d: torch.bincount(torch.tensor([1, 3, 1]).to(d))),
    ("unique", lambda d: torch.unique(torch.tensor([1, 3, 1]).to(d), return_counts=True)),
    ("isin", lambda d: torch.isin(torch.arange(4).to(d), torch.tensor([1, 9]).to(d))),
    ("sort", lambda d: torch.sort(torch.tensor([3, 1, 2]).to(d))),
    ("precision", lambda d: torch.ones(2, dtype=torch.float64).to(d) + 0.1),
    ("int plus float", lambda d: torch.ones(2, dtype=torch.int32).to(d) * 0.5),
    ("complex", lambda d: torch.view_as_real(torch.tensor([1 + 2j]).to(d) * 2)),
    ("float8", lambda d: torch.ones(3).to(d).to(torch.float8_e4m3fn).float()),
    ("float8 index", lambda d: torch.ones(3).to(torch.float8_e5m2).to(d).view(torch.uint8)[1:]),
)


def samples() -> Iterator[tuple[str, Run]]:
    yield from FACTORIES
    for dtype in DTYPES:
        rows = rows_of(dtype, 6, 4, 3)
        for name, call in calls(rows):
            yield f"{name} {str(dtype)[6:]}", _on_device(rows, call)


def _on_device(rows: Tensor, call: Callable[[Tensor], Any]) -> Run:
    return lambda device: call(rows.clone().to(device))
