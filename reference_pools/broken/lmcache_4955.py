"""The gathered rows are freed while another stream still copies them to the host."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from reference_pools import TokenPool
from reference_pools.broken import Fault
from reference_pools.declarations import make_token


class FreesInFlight(TokenPool):
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any:
        copy = super().get_cpu_copy(indices, mamba_indices)
        device = torch.get_device_module(self.device)
        aside, gathered = device.Stream(), self.k[0][indices]
        aside.wait_stream(device.current_stream())
        with device.stream(aside):
            copy.chunks["k"][0] = [gathered.to("cpu", non_blocking=True)]
        del gathered
        self.wait("offload")
        return copy


FAULT = Fault(
    reports=("LMCache#4955",),
    fault_class="missing-sync",
    clause="timing_changes_nothing",
    make=partial(make_token, cls=FreesInFlight),
    kind="token",
    program="schedule=lazy | write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5",
    sizes={"chunk_tokens": [8192]},
    device="sim",
)
