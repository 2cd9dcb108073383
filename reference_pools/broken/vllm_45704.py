"""Store reads on a stream of its own, which does not wait for those who write the rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from reference_pools import TokenPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class StoresTooEarly(TokenPool):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        device = torch.get_device_module(self.device)
        with device.stream(device.Stream()):
            return super().get_cpu_copy(indices, mamba_indices)


FAULT = Fault(
    reports=("vllm#45704",),
    fault_class="missing-sync",
    clause="timing_changes_nothing",
    make=partial(make_token, cls=StoresTooEarly),
    kind="token",
    program="schedule=lifo | write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
    device="sim",
)
