"""What an operation's schema says about how to run it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

_TENSOR = ("Tensor", "Optional[Tensor]")
_SYNCING = ("aten::nonzero", "aten::masked_select", "aten::equal", "aten::_local_scalar_dense")
_COUNTED = ("aten::arange", "aten::range", "aten::linspace", "aten::logspace")
"""Here numbers decide on shapes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One operation: which arguments, by position, are written, are tensors, are numbers.

    `outs` are the names of its `out=` arguments. `syncs`: the shape of its result depends on
    values, so it waits, as on CUDA.
    """

    name: str
    arguments: tuple[str, ...]
    written: tuple[int, ...]
    outs: tuple[str, ...]
    tensors: frozenset[int]
    numbers: frozenset[int]
    numbers_as_tensors: bool
    takes_host_indices: bool
    is_view: bool
    syncs: bool
    returns: int
    returns_list: bool


@cache
def plan_of(op: Any) -> Plan:
    schema = op._schema
    written = [i for i, a in enumerate(schema.arguments) if a.alias_info and a.alias_info.is_write]
    types = [str(argument.type) for argument in schema.arguments]
    by_count = schema.name.startswith(_COUNTED)
    returned = [str(each.type) for each in schema.returns]
    return Plan(
        name=schema.name.removeprefix("aten::"),
        arguments=tuple(argument.name for argument in schema.arguments),
        written=tuple(written),
        outs=tuple(schema.arguments[i].name for i in written if schema.arguments[i].is_out),
        tensors=frozenset(i for i, kind in enumerate(types) if kind in _TENSOR),
        numbers=frozenset(i for i, kind in enumerate(types) if kind == "number" and not by_count),
        numbers_as_tensors=torch._C._should_allow_numbers_as_tensors(
            schema.name.removeprefix("aten::")
        ),
        takes_host_indices=schema.name.removeprefix("aten::").startswith(
            ("index.", "_unsafe_index")
        )
        or schema.name in ("aten::index", "aten::index_put_", "aten::_index_put_impl_"),
        is_view=any(r.alias_info and not r.alias_info.is_write for r in schema.returns),
        syncs=schema.name in _SYNCING
        or torch.Tag.dynamic_output_shape in op.tags
        or torch.Tag.data_dependent_output in op.tags,
        returns=len(returned),
        returns_list=len(returned) == 1 and returned[0].startswith("List"),
    )
