"""Bytes that say where they belong."""

from __future__ import annotations

import itertools

import pytest
import torch

from conformance.fingerprints import fingerprints

CPU = torch.device("cpu")


@pytest.mark.parametrize("width", [1, 7, 8, 9, 224])
def test_shape_and_dtype(width: int) -> None:
    made = fingerprints(0, 3, 30, width, 0, CPU)
    assert (made.dtype, tuple(made.shape)) == (torch.uint8, (3, 30, width))
    assert made.is_contiguous()


@pytest.mark.parametrize("width", [8, 18, 224])
def test_no_two_cells_agree(width: int) -> None:
    cells = torch.cat(
        [
            fingerprints(buffer, 4, 30, width, write, CPU).flatten(0, 1)
            for buffer, write in itertools.product(range(3), range(5))
        ]
    )
    assert len(cells.unique(dim=0)) == len(cells) == 3 * 5 * 4 * 30


def test_same_place_has_the_same_bytes_every_time() -> None:
    fingerprints.cache_clear()
    before = fingerprints(1, 3, 30, 18, 2, CPU).clone()
    fingerprints.cache_clear()
    assert torch.equal(fingerprints(1, 3, 30, 18, 2, CPU), before)


def test_narrow_cells_are_the_beginning_of_wide_ones() -> None:
    wide, narrow = (fingerprints(0, 3, 30, width, 0, CPU) for width in (64, 9))
    assert torch.equal(wide[..., :9], narrow)


def test_every_byte_value_occurs() -> None:
    made = fingerprints(0, 3, 30, 224, 0, CPU)
    counts = torch.bincount(made.flatten().int(), minlength=256)
    assert counts.min() > 0
    assert counts.max() < 2 * made.numel() / 256
