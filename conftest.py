from __future__ import annotations

import torch

from conformance import Family, Pool
from reference_pools.declarations import kv_pools, make_hybrid

# Pools are small here: more threads would only wait for each other, above all under -n.
torch.set_num_threads(1)


def pytest_kv_pools() -> list[Pool | Family]:
    return [
        *kv_pools(),
        Pool("hybrid-mla", make_hybrid, kind="hybrid", attention="mla", level="strict"),
        Pool("hybrid-dsa", make_hybrid, kind="hybrid", attention="dsa", level="strict"),
    ]
