"""Makes "sim" a device of this process: once, and for good."""

# ruff: noqa: ARG001
# The arguments are torch's, whether they matter here or not.

from __future__ import annotations

import os
import sys
import threading
from functools import partial
from typing import Any

import torch

from conformance.simdevice import copies, direct, indexing, kernels, pinned, views
from conformance.simdevice.errors import SimUnavailable
from conformance.simdevice.fallback import fallback
from conformance.simdevice.memory import MEMORY
from conformance.simdevice.scheduler import SCHEDULER
from conformance.simdevice.sites import skip_package
from conformance.simdevice.storages import guard_storages
from conformance.simdevice.torch_module import sim_module

NAME, UNNAMED = "sim", "privateuseone"
_lock = threading.Lock()
_libraries: list[Any] = []


def register() -> None:
    """Register the device; again is no error. Raises `SimUnavailable`."""
    with _lock:
        if not _libraries:
            _register_backend()
            _register_kernels()
            guard_storages()
            skip_package(os.path.dirname(torch.__file__))
            # Host tensors that were made in inference mode are written here too.
            SCHEDULER.quiet = partial(torch._C._InferenceMode, True)


def _register_backend() -> None:
    try:
        from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
    except ImportError:
        raise SimUnavailable(
            f"the device sim needs torch 2.10 or newer, this is {torch.__version__}"
        ) from None
    holder = torch._C._get_privateuse1_backend_name()
    if holder != UNNAMED or hasattr(torch, UNNAMED):
        raise SimUnavailable(
            f"this process already has the device {holder!r}, and torch takes one such backend "
            "a process; run the checks on sim in another process"
        )
    module = sim_module()
    _setup_privateuseone_for_python_backend(NAME, backend_module=module)
    sys.modules[f"torch.{NAME}"] = module


def _register_kernels() -> None:
    library: Any = torch.library.Library  # torch leaves it untyped
    aten = library("aten", "IMPL")
    for name, kernel in _kernels().items():
        aten.impl(name, kernel, "PrivateUse1")
    aten.impl("_pin_memory", _pin_memory, "CPU")
    aten.impl("is_pinned", _is_pinned, "CPU")
    rest = library("_", "IMPL")
    rest.fallback(fallback, "PrivateUse1")
    _libraries.extend((aten, rest))


def _kernels() -> dict[str, Any]:
    """By the name of the operation, with its overload."""
    return {
        **direct.kernels(),
        **{_full_name(op): views.by_cpu_kernel(op) for op in views.VIEWS},
        "set_.source_Storage": views.set_storage,
        "set_.source_Tensor": views.set_tensor,
        "resize_": views.resize_,
        "empty.memory_format": kernels.empty,
        "empty_strided": kernels.empty_strided,
        "arange": kernels.arange,
        "arange.start": kernels.arange_step,
        "arange.start_step": kernels.arange_step,
        "arange.start_out": kernels.arange_out,
        "fill_.Scalar": kernels.fill_,
        "zero_": kernels.zero_,
        "equal": kernels.equal,
        "_local_scalar_dense": kernels.item,
        "index.Tensor": indexing.index,
        "_index_put_impl_": indexing.index_put_,
        "copy_": copies.copy_,
        "_copy_from": lambda source, target, non_blocking=False: copies.copy_(
            target, source, non_blocking
        ),
        "_to_copy": copies.to_copy,
        "record_stream": _record_stream,
    }


def _full_name(op: Any) -> str:
    """`view` for `aten::view`, `set_.source_Storage` for an overload."""
    name: str = op._schema.name.removeprefix("aten::")
    return f"{name}.{op._schema.overload_name}" if op._schema.overload_name else name


def _record_stream(tensor: torch.Tensor, stream: torch.Stream) -> None:
    block = MEMORY.block(tensor)
    if block is not None:
        block.users.add(stream.stream_id)


def _pin_memory(tensor: torch.Tensor, device: torch.device | None = None) -> torch.Tensor:
    return pinned.empty_pinned(tensor.shape, tensor.dtype).copy_(tensor)


def _is_pinned(tensor: torch.Tensor, device: torch.device | None = None) -> bool:
    return pinned.is_pinned(tensor)
