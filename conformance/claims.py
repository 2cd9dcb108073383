"""The claims of a declaration, checked: what a pool owns, and what it says it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from conformance.adapters import AllocatorAdapter
from conformance.allocator import Allocator
from conformance.build import adapter_of, build_anew
from conformance.case import Case
from conformance.front import allocator_adapter_of
from conformance.geometry import Geometry, geometries
from conformance.model import Model
from conformance.troubles import Tally
from conformance.violation import violation


def check_accounting(case: Case) -> None:
    """Every device tensor is a buffer or declared metadata, in the first and last geometry."""
    options = geometries(case.pool, case.device)
    for geometry in dict.fromkeys((options[0], options[-1])):
        _, inventory = build_anew(case.pool, geometry)
        case.tally.add(Tally(programs=1))
        if inventory.unaccounted:
            raise violation(
                case.clause.id,
                [
                    ("pool", case.pool.name),
                    ("geometry", str(geometry)),
                    ("buffers", ", ".join(b.name for b in inventory.buffers)),
                    ("found", f"{', '.join(inventory.unaccounted)}: nobody declared"),
                    ("help", "give it one axis of token, page or state rows, or name it in"),
                    ("", "the `metadata` of the pool's adapter if it holds no request data"),
                ],
            )


def check_lacks(case: Case) -> None:
    """What the pool lacks raises `NotImplementedError`, and no byte changes."""
    geometry = geometries(case.pool, case.device)[0]
    for capability in sorted(case.pool.lacks):
        made, inventory = build_anew(case.pool, geometry)
        model = Model(inventory.buffers, geometry.page_size, case.pool.ids == "page")
        for name, call in _calls(case, made, geometry, capability).items():
            case.tally.add(Tally(programs=1))
            problem = accepted(name, call, capability)
            found = model.first_difference()
            if not problem and found is not None:
                problem = f"{name} refused, but first it changed {model.describe(found)}"
            if problem:
                raise violation(case.clause.id, [*who(case, geometry, capability, problem)])


def check_lacking_verbs(case: Case) -> None:
    """What the allocator lacks raises `NotImplementedError`, and nothing is handed out."""
    allocator = case.front
    assert isinstance(allocator, Allocator)
    geometry = geometries(case.pool, case.device)[0]
    adapter = allocator_adapter_of(allocator)
    for capability in sorted(allocator.lacks):
        pool, inventory = build_anew(case.pool, geometry)
        made = allocator.make(pool)
        state = Model(inventory.buffers, geometry.page_size, case.pool.ids == "page")
        ids = adapter.alloc(made, geometry.page_size, _ids(geometry, 0))
        assert ids is not None
        if capability == "zeroing" and _is_zero(state, int(ids[0])):
            problem = "a slot was zero when it was handed out: delete 'zeroing' from lacks"
            raise violation(case.clause.id, [*who(case, geometry, capability, problem)])
        before = dict(adapter.available(made))
        for name, call in _allocator_calls(adapter, made, ids, capability).items():
            case.tally.add(Tally(programs=1))
            problem = accepted(name, call, capability)
            if not problem and dict(adapter.available(made)) != before:
                problem = f"{name} refused, but what is available has changed"
            if problem:
                raise violation(case.clause.id, [*who(case, geometry, capability, problem)])


def accepted(name: str, call: Callable[[], Any], capability: str) -> str:
    """What is wrong with how a verb that is lacking answers; nothing where it refuses."""
    try:
        call()
    except NotImplementedError:
        return ""
    except Exception as error:
        return f"{name} raised {type(error).__name__}, expected NotImplementedError: {error}"
    return f"{name} was accepted: delete {capability!r} from lacks"


def _is_zero(model: Model, slot: int) -> bool:
    """Whether a state row, which held bytes of nobody, is zero in every buffer."""
    ids = model.cells((), slot).state
    found = [b.gather(ids) for b in model.actual if b.unit == "state"]
    return not any(bool(rows.any()) for rows in found)


def who(case: Case, geometry: Geometry, capability: str, problem: str) -> Iterator[tuple[str, str]]:
    """The evidence: who says to lack what, and what was found."""
    yield case.subject, case.name
    yield "geometry", str(geometry)
    yield "lacks", capability
    yield "found", problem


def _calls(
    case: Case, made: Any, geometry: Geometry, capability: str
) -> dict[str, Callable[[], Any]]:
    """The verbs of a pool that this capability stands for."""
    adapter, ids = adapter_of(case.pool), _ids(geometry, 1)
    other, one, two = ids + 1, *(torch.full_like(ids, state) for state in (1, 2))
    if capability == "move":
        return {"move": lambda: adapter.move(made, other, ids)}
    if capability == "copy_state":
        return {"copy_state": lambda: adapter.copy_state(made, one, two)}
    if capability == "zero_state":
        return {"zero_state": lambda: adapter.zero_state(made, one)}
    state = one if capability == "state" else None

    def reload() -> None:
        copy = adapter.offload(made, ids, None) if state is not None else None
        adapter.reload(made, copy, ids, state)

    return {"offload": lambda: adapter.offload(made, ids, state), "reload": reload}


def _allocator_calls(
    adapter: AllocatorAdapter, made: Any, ids: Tensor, capability: str
) -> dict[str, Callable[[], Any]]:
    """The verbs of an allocator that this capability stands for."""
    if capability == "offload":
        return {
            "offload": lambda: adapter.offload(made, ids, None),
            "reload": lambda: adapter.reload(made, None, ids, None),
        }
    if capability == "groups":
        return {
            "begin_group": lambda: adapter.begin_group(made),
            "end_group": lambda: adapter.end_group(made),
        }
    return {"share": lambda: adapter.share(made, ids)} if capability == "sharing" else {}


def _ids(geometry: Geometry, count: int) -> Tensor:
    first = geometry.page_size
    return torch.arange(first, first + count, device=geometry.device)
