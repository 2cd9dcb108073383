"""Operations give on sim what they give on the CPU: values, shapes, strides and dtypes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from simdevice_device import sim_device  # noqa: F401  (each test has the device)
from simdevice_samples import Run, samples
from torch import Tensor

SAMPLES = list(samples())


def same(got: Any, wanted: Any) -> None:
    if isinstance(wanted, Tensor):
        assert got.dtype is wanted.dtype
        assert got.shape == wanted.shape
        if wanted.numel() > 1:
            assert got.stride() == wanted.stride()
        host = got.cpu()
        assert torch.equal(host, wanted) or torch.allclose(host, wanted, equal_nan=True)
    elif isinstance(wanted, list | tuple):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            same(one, other)
    else:
        assert got == wanted


@pytest.mark.parametrize(("name", "run"), SAMPLES, ids=[name for name, _ in SAMPLES])
def test_sample_agrees_with_the_cpu(name: str, run: Run) -> None:
    same(run("sim"), run("cpu"))
