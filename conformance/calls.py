"""How a verb is called: its ids as tensors, and what becomes of the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from conformance.adapters import Adapter
from conformance.programs import Form

_DTYPES = {"int64": torch.int64, "int32": torch.int32, "float32": torch.float32}

Verb = Callable[[Tensor, Tensor | None], Any]
"""A verb with everything given but two tensors of ids: of tokens and state, or of targets
and sources."""


def ids_of(form: Form, rows: Sequence[int], device: str) -> Tensor:
    """The ids `rows` as a tensor `[n]` of this form, on `device` or on the host."""
    values = [v for row in rows for v in (row, -1)] if form.strided else rows
    ids = torch.tensor(values, dtype=_DTYPES[form.dtype], device="cpu" if form.on_host else device)
    return ids[::2] if form.strided else ids


def waiting(verb: Verb, adapter: Adapter, made: Any) -> Verb:
    """An offload by `verb`, and the wait that the adapter names for its copy."""

    def offload(ids: Tensor, state: Tensor | None) -> Any:
        copy = verb(ids, state)
        adapter.wait(made, copy)
        return copy

    return offload


def outcome(verb: Verb, first: Tensor, second: Tensor | None) -> tuple[Any, Exception | None]:
    """What the verb returns, or the error that it raises."""
    return attempt(lambda: verb(first, second))


def attempt(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What the call returns, or the error that it raises."""
    # What is raised later must not carry this error as its context: Hypothesis would take
    # the same failure, met at another place in the engine, for a different one.
    try:
        return call(), None
    except Exception as error:
        return None, error
