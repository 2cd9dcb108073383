"""How much memory is in use, as `torch.cuda` tells it: bytes of living storages, unrounded."""

# ruff: noqa: ARG001
# The arguments are torch's, whether they matter here or not.

from __future__ import annotations

from conformance.simdevice.memory import MEMORY, TOTAL_BYTES


def memory_allocated(device: object = None) -> int:
    """Bytes of the tensors of this epoch that are alive."""
    MEMORY.bury()
    return MEMORY.allocated


def max_memory_allocated(device: object = None) -> int:
    """The most that `memory_allocated` was since the last reset of it."""
    MEMORY.bury()
    return MEMORY.peak


def reset_peak_memory_stats(device: object = None) -> None:
    MEMORY.bury()
    MEMORY.peak = MEMORY.allocated


def mem_get_info(device: object = None) -> tuple[int, int]:
    """Free bytes, and all bytes: the limit if there is one."""
    total = TOTAL_BYTES if MEMORY.limit is None else MEMORY.limit
    return max(total - memory_allocated(), 0), total


def limit_memory(limit_bytes: int | None) -> None:
    """From now on, an allocation that would bring the device above this many bytes raises
    `torch.OutOfMemoryError`. None: no limit."""
    MEMORY.limit = limit_bytes
