from __future__ import annotations

from drifted import Root


class Hybrid(Root):
    def get_cpu_copy(self, indices, mamba_indices=None):
        return self.rows(indices), self.states(mamba_indices)

    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
        self.write(kv_cache_cpu, indices, mamba_indices)


class SparseHybrid(Hybrid):
    def get_cpu_copy(self, indices, mamba_indices=None):
        return super().get_cpu_copy(indices), self.index_keys(indices)
