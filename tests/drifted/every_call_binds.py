from __future__ import annotations

from drifted import Root


class Latent(Root):
    def get_cpu_copy(self, indices, mamba_indices=None):
        return self.rows(indices)

    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
        self.write(kv_cache_cpu, indices)


class Sparse(Latent):
    def get_cpu_copy(self, indices, mamba_indices=None, req_pool_index=None):
        return super().get_cpu_copy(indices, req_pool_index=req_pool_index)

    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None, req_pool_index=None):
        super().load_cpu_copy(kv_cache_cpu, indices)
