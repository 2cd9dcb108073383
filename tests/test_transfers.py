"""What a transfer asks of a device that is not the CPU, seen without having one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from reference_pools.transfer import move_rows, offload_rows, reload_rows

IDS = torch.tensor([5, 4, 9])


class Host:
    """Stands for the host tensor that a copy goes to."""

    def __init__(self, calls: list[Any], shape: Any, dtype: Any, pin_memory: bool) -> None:
        self.calls = calls
        calls.append(("empty", tuple(shape), dtype, pin_memory))

    def copy_(self, source: Any, *, non_blocking: bool) -> Host:
        self.calls.append(("copy", source.device.type, non_blocking))
        return self


class Rows:
    """Stands for `[n, 7]` rows on a device: gathers and takes rows, and writes nothing."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self.written: list[tuple[list[int], Any]] = []

    def __getitem__(self, ids: torch.Tensor) -> Any:
        return SimpleNamespace(
            device=self.device,
            is_cuda=self.device.type == "cuda",
            shape=torch.Size([len(ids), 7]),
            dtype=torch.float16,
        )

    def __setitem__(self, ids: torch.Tensor, chunk: Any) -> None:
        self.written.append((ids.tolist(), chunk))


class Chunk(list[int]):
    """Stands for rows on the host."""

    def to(self, device: torch.device, *, non_blocking: bool) -> Any:
        return (list(self), str(device), non_blocking)


@pytest.mark.parametrize("device", ["cuda:0", "cuda", "xpu"])
def test_offload_asks_for_pinned_memory_off_the_cpu(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(torch, "empty", lambda shape, **words: Host(calls, shape, **words))
    chunks = offload_rows(Rows(device), IDS, 2)  # type: ignore[arg-type]
    kind = torch.device(device).type
    assert [type(chunk) for chunk in chunks] == [Host, Host]
    assert calls == [
        ("empty", (2, 7), torch.float16, True),
        ("copy", kind, True),
        ("empty", (1, 7), torch.float16, True),
        ("copy", kind, True),
    ]


def test_offload_on_the_cpu_copies_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.arange(70.0).reshape(10, 7)
    monkeypatch.setattr(torch, "empty", None)
    (chunk,) = offload_rows(rows, IDS, 3)
    assert torch.equal(chunk, rows[IDS])
    assert chunk.untyped_storage().data_ptr() != rows.untyped_storage().data_ptr()


def test_reload_does_not_wait_for_a_chunk_before_the_next() -> None:
    rows = Rows("cuda:0")
    reload_rows(rows, IDS, [Chunk([1, 2]), Chunk([3])])  # type: ignore[arg-type, list-item]
    assert rows.written == [
        ([5, 4], ([1, 2], "cuda:0", True)),
        ([9], ([3], "cuda:0", True)),
    ]


def test_reload_of_no_chunks_writes_nothing() -> None:
    rows = Rows("cuda:0")
    reload_rows(rows, IDS[:0], [])  # type: ignore[arg-type]
    assert rows.written == []


def test_move_reads_every_row_before_it_writes_one() -> None:
    rows = torch.arange(10.0)[:, None]
    move_rows([rows], torch.tensor([4, 5, 6]), torch.tensor([5, 6, 7]))
    assert rows.flatten().tolist() == [0, 1, 2, 3, 5, 6, 7, 7, 8, 9]
