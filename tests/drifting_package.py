"""A package with one pool, as a downstream would have it: drifted, or as it should be."""

from __future__ import annotations

from pathlib import Path

SOURCE = """\
import torch_npu  # cannot be imported here, and is not


class KVCache:
    def get_cpu_copy(self, indices, mamba_indices=None):
        raise NotImplementedError

    def load_cpu_copy(self, copy, indices, mamba_indices=None):
        raise NotImplementedError


class NPUPool(KVCache):
    def get_cpu_copy(self, {parameters}):
        return indices

    def load_cpu_copy(self, copy, indices, mamba_indices=None):
        return None


def retract(pool: KVCache, indices):
    pool.get_cpu_copy(indices, mamba_indices=None)
"""

ROOT = "engine.pools:KVCache"
FAULT = (
    "engine.pools.NPUPool.get_cpu_copy: "
    "get_cpu_copy(indices) does not accept mamba_indices=, which KVCache does"
)
LINE, CALLER = 13, 21
"""Of the fault, and of the call that it breaks."""


def write_package(folder: Path, drifted: bool) -> Path:
    """Write `engine/pools.py` below `folder`; return it."""
    path = folder / "engine" / "pools.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    parameters = "indices" if drifted else "indices, mamba_indices=None"
    path.write_text(SOURCE.format(parameters=parameters), encoding="utf-8")
    return path
