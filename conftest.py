"""Settings of every test session of this repository."""

from __future__ import annotations

import torch

# Pools are small here: more threads would only wait for each other, above all under -n.
torch.set_num_threads(1)
