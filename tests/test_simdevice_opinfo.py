"""torch's own samples of the operations that pools use. They need numpy, which torch does not
require: without it these tests are skipped, and `test_simdevice_operations.py` still runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from simdevice_device import sim_device  # noqa: F401  (each test has the device)
from torch import Tensor
from torch.utils._pytree import tree_map

from conformance import simdevice as sim

pytest.importorskip("numpy", reason="torch's samples of operations need numpy")
op_db: list[Any] = pytest.importorskip(
    "torch.testing._internal.common_methods_invocations",
    reason="torch's samples of operations need packages that are not here",
).op_db

NAMES = frozenset(
    [
        "T",
        "arange",
        "argwhere",
        "bincount",
        "bool",
        "byte",
        "cat",
        "chunk",
        "clone",
        "contiguous",
        "diff",
        "empty_like",
        "equal",
        "expand",
        "fill",
        "flatten",
        "flip",
        "full",
        "gather",
        "index_add",
        "index_copy",
        "index_fill",
        "index_put",
        "index_select",
        "item",
        "masked_fill",
        "masked_scatter",
        "masked_select",
        "narrow",
        "nonzero",
        "ones",
        "permute",
        "repeat",
        "reshape",
        "roll",
        "scatter",
        "scatter_add",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "stack",
        "sum",
        "take",
        "to",
        "transpose",
        "unbind",
        "unflatten",
        "unfold",
        "unique",
        "unsqueeze",
        "view",
        "where",
        "zeros",
        "__getitem__",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "add",
        "sub",
        "mul",
        "div",
        "remainder",
        "floor_divide",
        "all",
        "any",
        "max",
        "min",
        "aminmax",
        "cumsum",
        "isin",
    ]
)
WITHOUT_VALUES = ("empty_like",)
DTYPES = (torch.float32, torch.int64, torch.bool)
CASES = [(op, dtype) for op in op_db if op.name in NAMES for dtype in DTYPES if dtype in op.dtypes]


def on_sim(value: Any) -> Any:
    """The same arguments on the device; "cpu", where an argument names a device, as well."""

    def moved(each: Any) -> Any:
        if isinstance(each, Tensor):
            return _moved(each)
        return torch.device("sim") if isinstance(each, torch.device) else each

    return tree_map(moved, value)


def _moved(tensor: Tensor) -> Tensor:
    """With its strides, and in a storage as large as it needs."""
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="sim")
    return made.copy_(tensor.detach())


def samples_of(op: Any, dtype: torch.dtype) -> Iterator[tuple[Any, Any]]:
    """The answer of the CPU, and a call that asks the device. Samples that the CPU refuses
    are passed over."""
    for sample in op.sample_inputs("cpu", dtype):
        kwargs = {k: "sim" if k == "device" else v for k, v in sample.kwargs.items()}
        there = on_sim((sample.input, list(sample.args), kwargs))
        try:
            wanted = op(sample.input, *sample.args, **sample.kwargs)
        except RuntimeError:
            continue
        yield wanted, (lambda there=there: op(there[0], *there[1], **there[2]))


def agree(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, Tensor):
        host = got.cpu()
        same = torch.equal(host, wanted) or torch.allclose(host, wanted, equal_nan=True)
        return got.dtype is wanted.dtype and got.shape == wanted.shape and same
    if isinstance(wanted, list | tuple):
        return len(got) == len(wanted) and all(map(agree, got, wanted))
    return bool(got == wanted) or (isinstance(wanted, float) and math.isnan(wanted))


@pytest.mark.filterwarnings("ignore:The reduce argument:UserWarning")
@pytest.mark.parametrize(
    ("op", "dtype"), CASES, ids=[f"{op.formatted_name}-{str(dtype)[6:]}" for op, dtype in CASES]
)
def test_samples_of_torch_agree_with_the_cpu(op: Any, dtype: torch.dtype) -> None:
    count = 0
    for wanted, ask in samples_of(op, dtype):
        got = ask()
        sim.synchronize()
        count += 1
        if op.name not in WITHOUT_VALUES:
            assert agree(got, wanted)
    assert count
