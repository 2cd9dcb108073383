"""Tensors of the device: their bytes, their count, their end."""

from __future__ import annotations

import copy
import gc
import io
import pickle

import pytest
import torch
from simdevice_device import sim_device  # noqa: F401  (each test has the device)

from conformance import simdevice as sim


def raw(size: int) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.uint8, device="sim")


def test_views_share_their_bytes() -> None:
    rows = torch.zeros(4, 6, device="sim")
    view = rows.view(2, 2, 6)[1, :, ::2].transpose(0, 1)
    view.fill_(3)
    assert rows.sum().item() == 3 * 6
    assert view.untyped_storage().data_ptr() == rows.untyped_storage().data_ptr()
    assert rows.data_ptr() + 12 * 4 == view.data_ptr()


def test_views_of_another_dtype_share_their_bytes() -> None:
    rows = torch.zeros(2, dtype=torch.int32, device="sim")
    rows.view(torch.uint8)[1] = 1
    assert rows.tolist() == [256, 0]
    assert torch.view_as_complex(torch.ones(1, 2, device="sim")).tolist() == [1 + 1j]


def test_bytes_are_counted() -> None:
    rows = raw(1000)
    view, more = rows[10:20], rows + 1
    assert sim.memory_allocated() == 2000
    del more
    assert sim.memory_allocated() == 1000
    del rows
    assert sim.memory_allocated() == 1000
    del view
    assert sim.memory_allocated() == 0
    assert sim.max_memory_allocated() == 2000
    sim.reset_peak_memory_stats()
    assert sim.max_memory_allocated() == 0


def test_limit() -> None:
    sim.reset(limit_bytes=3000)
    rows = raw(1000)
    assert sim.mem_get_info() == (2000, 3000)
    with pytest.raises(torch.OutOfMemoryError, match="allocate 2001 bytes, 1000 of 3000"):
        raw(2001)
    assert raw(2000)[7].item() == 0
    sim.limit_memory(1500)
    with pytest.raises(torch.OutOfMemoryError):
        rows.clone()
    sim.limit_memory(None)
    assert rows.clone().tolist() == rows.tolist()


def test_new_memory_is_poisoned() -> None:
    assert torch.empty(3, device="sim").isnan().all().item()
    assert set(torch.empty(3, dtype=torch.uint8, device="sim").tolist()) == {0xA5}


def test_freed_memory_is_poisoned_in_the_order_of_its_own_stream() -> None:
    side, rows = sim.Stream(), torch.ones(2, device="sim")
    side.wait_stream(sim.current_stream())
    with sim.stream(side):
        more = rows + 1
    del rows
    assert [each.name for each in sim.pending()][-1] == "free"
    sim.current_stream().synchronize()
    assert more.tolist() != [2, 2]


def test_tensors_of_before_a_reset_are_not_counted_and_draw_nothing() -> None:
    old, asked = raw(1000), []
    sim.choosing(lambda count: asked.append(count) or 0)
    assert sim.memory_allocated() == 0
    new = raw(10)
    side = sim.Stream()
    with sim.stream(side):
        raw(5)
    del old
    gc.collect()
    assert sim.memory_allocated() == 10
    assert not any(each.name == "free" and each.stream == 0 for each in sim.pending())
    assert new.tolist() == [0] * 10


def test_tensor_of_before_a_reset_stays_usable() -> None:
    old = torch.ones(2, device="sim")
    sim.synchronize()
    sim.reset()
    assert (old + 1).tolist() == [2, 2]
    old.record_stream(sim.Stream())


@pytest.mark.parametrize("size", [(0,), (3, 0), ()])
def test_tensors_of_no_element_and_of_no_dimension(size: tuple[int, ...]) -> None:
    rows = torch.ones(size, device="sim")
    assert torch.equal(rows.cpu(), torch.ones(size))
    assert torch.equal((rows.clone() + 1).cpu(), torch.ones(size) + 1)
    rows.record_stream(sim.current_stream())


def test_storages_made_alone() -> None:
    storage = torch.UntypedStorage(4, device="sim")
    assert storage.nbytes() == 4
    assert storage.device.type == "sim"
    assert torch.UntypedStorage([1, 2], device="sim").tolist() == [1, 2]
    assert torch.UntypedStorage(device="sim").nbytes() == 0
    assert torch.UntypedStorage(3).device.type == torch.UntypedStorage(3, device="cpu").device.type
    assert torch.UntypedStorage([1, 2]).tolist() == [1, 2]


def test_storages_made_of_storages() -> None:
    rows = torch.arange(4, dtype=torch.uint8, device="sim")
    storage = rows.untyped_storage()
    assert storage.new().nbytes() == 0
    assert storage.new().device.type == "sim"
    assert storage.clone().tolist() == [0, 1, 2, 3]
    assert storage.cpu().tolist() == [0, 1, 2, 3]
    assert rows.new(3).shape == (3,)
    assert torch.UntypedStorage(2).new().device.type == "cpu"
    for refused in (
        lambda: storage.resize_(8),
        lambda: torch.UntypedStorage._new_shared(4, device="sim"),
    ):
        with pytest.raises(NotImplementedError, match="of sim"):
            refused()
    assert torch.UntypedStorage(2).resize_(5).nbytes() == 5
    assert torch.UntypedStorage._new_shared(2).nbytes() == 2


def test_copies_and_pickles() -> None:
    rows = torch.arange(3, device="sim")
    saved = io.BytesIO()
    torch.save(rows, saved)
    saved.seek(0)
    for copied in (
        copy.deepcopy(rows),
        pickle.loads(pickle.dumps(rows)),
        torch.load(saved, weights_only=True),
    ):
        assert copied.device.type == "sim"
        assert copied.tolist() == [0, 1, 2]
        assert copied.data_ptr() != rows.data_ptr()


def test_resize_keeps_what_was_there() -> None:
    rows = torch.arange(4.0, device="sim")
    assert rows.resize_(2).tolist() == [0, 1]
    assert rows.resize_(4).tolist() == [0, 1, 2, 3]
    assert rows.resize_(2, 3).flatten()[:4].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("start", [0, 2, 5])
def test_out_of_another_size_is_resized_with_the_warning_of_torch(start: int) -> None:
    one, other = torch.arange(3.0, device="sim"), torch.ones(3, device="sim")
    calls = (
        lambda out: torch.add(one, other, out=out),
        lambda out: torch.cat([one[:1], other[:2]], out=out),
        lambda out: torch.index_select(one, 0, torch.arange(3, device="sim"), out=out),
        lambda out: torch.arange(3, out=out),
        lambda out: torch.masked_select(one, one >= 0, out=out),
    )
    for call in calls:
        out = torch.empty(start, device="sim")
        if start:
            with pytest.warns(UserWarning, match="An output with one or more elements"):
                call(out)
        else:
            call(out)
        assert out.shape == (3,)
        assert not out.isnan().any().item()


def test_inference_mode() -> None:
    with torch.inference_mode():
        rows = torch.zeros(3, device="sim")
        rows[1] = 2.0
        host = rows.to("cpu", non_blocking=True)
    sim.synchronize()
    assert host.tolist() == [0, 2, 0]


def test_autograd() -> None:
    weight = torch.ones(3, device="sim", requires_grad=True)
    (weight * torch.arange(3.0, device="sim")).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [0, 1, 2]


def test_memory_made_in_inference_mode_serves_outside_of_it() -> None:
    with torch.inference_mode():
        rows, host = torch.arange(3.0, device="sim"), torch.ones(3).pin_memory()
    assert (rows + 1).tolist() == [1, 2, 3]
    assert rows[rows > 0].tolist() == [1, 2]
    assert host.to("sim", non_blocking=True).tolist() == [1, 1, 1]
