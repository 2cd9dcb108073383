"""The claims of a declaration, checked: what a pool owns, and what it says it lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance.case import Case
from conformance.geometry import Geometry, geometries
from conformance.model import Model
from conformance.runner import Tally, adapter_of, build
from conformance.violation import violation


def check_accounting(case: Case) -> None:
    """Every device tensor is a buffer or declared metadata, in the first and last geometry."""
    options = geometries(case.pool, case.device)
    for geometry in dict.fromkeys((options[0], options[-1])):
        _, inventory = build(case.pool, geometry)
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
        for call in ("offload", "reload"):
            case.tally.add(Tally(programs=1))
            _refuses(case, geometry, capability, call)


def _refuses(case: Case, geometry: Geometry, capability: str, call: str) -> None:
    made, inventory = build(case.pool, geometry)
    model = Model(inventory.buffers, geometry.page_size, case.pool.ids == "page")
    verb = _call(case, made, geometry, with_state=capability == "state")[call]
    evidence = [("pool", case.pool.name), ("geometry", str(geometry)), ("lacks", capability)]
    try:
        verb()
    except NotImplementedError:
        found = model.first_difference()
        if found is not None:
            problem = f"{call} refused, but first it changed {model.describe(found)}"
            raise violation(case.clause.id, [*evidence, ("found", problem)]) from None
    except Exception as error:
        problem = f"{call} raised {type(error).__name__}, expected NotImplementedError: {error}"
        raise violation(case.clause.id, [*evidence, ("found", problem)]) from error
    else:
        problem = f"{call} was accepted: delete {capability!r} from lacks"
        raise violation(case.clause.id, [*evidence, ("found", problem)])


def _call(
    case: Case, made: Any, geometry: Geometry, *, with_state: bool
) -> dict[str, Callable[[], Any]]:
    adapter = adapter_of(case.pool)
    ids = torch.arange(geometry.page_size, geometry.page_size + 1, device=geometry.device)
    state = torch.ones(1, dtype=torch.int64, device=geometry.device) if with_state else None

    def reload() -> None:
        copy = adapter.offload(made, ids, None) if with_state else None
        adapter.reload(made, copy, ids, state)

    return {"offload": lambda: adapter.offload(made, ids, state), "reload": reload}
