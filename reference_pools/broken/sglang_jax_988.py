"""Layers are counted from the first layer of the model, not of this pool."""

from __future__ import annotations

from functools import partial
from typing import Any

from reference_pools import MLAPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_mla


class GlobalLayerIds(MLAPool):
    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None:
        here = self.latent
        self.latent = [here[(self.first_layer + i) % self.layers] for i in range(self.layers)]
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        self.latent = here


FAULT = Fault(
    reports=("sglang-jax#988",),
    fault_class="layer-offset",
    clause="reload_restores_the_same_rows",
    make=partial(make_mla, cls=GlobalLayerIds),
    kind="mla",
    program="write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
)
