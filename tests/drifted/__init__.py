"""A family whose classes break the clauses that only source shows, one module a clause."""

from __future__ import annotations


class Root:
    def get_cpu_copy(self, indices, mamba_indices=None):
        raise NotImplementedError

    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
        raise NotImplementedError
