"""Host memory of one buffer, and the host pools that are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from host_tiers import HYBRIDS, KINDS, LAYOUTS, PAGE, make_device, make_tier
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from reference_pools import MLAPool
from reference_pools.host import HostBuffer, HostPool, HostTier, Layout, Row

each_layout = pytest.mark.parametrize("layout", LAYOUTS)


def buffer(layout: Layout, per_page: int = 4) -> HostBuffer:
    row = Row((3,), torch.int32)
    return HostBuffer(row, layers=7, pages=5, per_page=per_page, layout=layout, pin=False)


def numbered(layout: Layout) -> HostBuffer:
    """Row r of layer l holds 100 * l + r."""
    made = buffer(layout)
    for layer in range(7):
        for page in range(5):
            rows = 100 * layer + 4 * page + torch.arange(4)
            made.page(layer, page).copy_(rows[:, None].expand(4, 3))
    return made


@pytest.mark.parametrize(
    ("layout", "per_page", "shape"),
    [
        ("layer_first", 4, (7, 20, 3)),
        ("page_first", 4, (5, 7, 4, 3)),
        ("layer_first", 1, (7, 5, 3)),
        ("page_first", 1, (5, 7, 1, 3)),
    ],
)
def test_layouts(layout: Layout, per_page: int, shape: tuple[int, ...]) -> None:
    memory = buffer(layout, per_page).memory
    assert (tuple(memory.shape), memory.is_contiguous()) == (shape, True)


def test_layouts_put_a_row_where_they_say() -> None:
    by_layer, by_page = (numbered(layout).memory for layout in LAYOUTS)
    assert int(by_layer[6, 9, 0]) == int(by_page[2, 6, 1, 0]) == 609
    assert torch.equal(by_layer, by_page.transpose(0, 1).reshape(7, 20, 3))


def test_unknown_layout_is_named() -> None:
    with pytest.raises(ValueError, match="^layout must be .*, got 'page_head'$"):
        buffer("page_head")


host_rows = st.lists(st.integers(0, 19), unique=True, max_size=12)


@settings(max_examples=30, deadline=None)
@given(layout=st.sampled_from(LAYOUTS), layer=st.integers(0, 6), rows=host_rows)
def test_gather_reads_the_rows_of_one_layer(layout: Layout, layer: int, rows: list[int]) -> None:
    out = torch.zeros(len(rows), 3, dtype=torch.int32)
    numbered(layout).gather(layer, rows, out)
    assert out.tolist() == [[100 * layer + row] * 3 for row in rows]


@settings(max_examples=30, deadline=None)
@given(layout=st.sampled_from(LAYOUTS), layer=st.integers(0, 6), rows=host_rows)
def test_scatter_writes_these_rows_only(layout: Layout, layer: int, rows: list[int]) -> None:
    made = numbered(layout)
    made.scatter(layer, rows, torch.full((len(rows), 3), -1, dtype=torch.int32))
    expected = 100 * torch.arange(7)[:, None] + torch.arange(20)
    expected[layer, rows] = -1
    found = torch.stack([torch.cat([made.page(i, page) for page in range(5)]) for i in range(7)])
    assert torch.equal(found[..., 1], expected.int())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_neighbours_are_copied_together(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[int] = []
    copy = Tensor.copy_

    def count(self: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
        copies.append(len(self))
        return copy(self, source, non_blocking)

    made, out = numbered(layout), torch.zeros(9, 3, dtype=torch.int32)
    monkeypatch.setattr(Tensor, "copy_", count)
    made.gather(0, [4, 5, 6, 7, 8, 1, 2, 17, 19], out)
    assert copies == [4, 1, 2, 1, 1]


# -- host pools -----------------------------------------------------------------------


@each_layout
@pytest.mark.parametrize("kind", KINDS + HYBRIDS)
def test_host_pool_has_every_buffer_of_the_device_pool(kind: str, layout: Layout) -> None:
    device = make_device(kind)
    host = HostPool(device, pages=5, layout=layout)
    assert host.buffers.keys() == device.buffers().keys()
    for name, layers in device.buffers().items():
        made = host.buffers[name]
        rows = {"index_k": 5, "conv": host.states, "temporal": host.states}.get(name, 20)
        assert made.row == Row.of(layers[0])
        assert made.memory.numel() == rows * len(layers) * layers[0][0].numel()
    assert host.size == host.allocator().size == 20
    assert host.allocator().alloc(4).tolist() == [0, 1, 2, 3]


def test_states_have_ids_of_their_own() -> None:
    assert HostPool(make_device("token"), pages=3).state_allocator() is None
    host = HostPool(make_device("hybrid"), pages=3, states=6)
    states = host.state_allocator()
    assert states is not None
    assert (states.size, states.page_size, states.alloc(2).tolist()) == (6, 1, [0, 1])
    assert HostPool(make_device("hybrid"), pages=3).states == 11


@pytest.mark.parametrize(
    ("kind", "sizes", "message"),
    [
        ("token", {"pages": 0}, "pages 0 and states None must be positive"),
        ("hybrid", {"pages": 3, "states": 0}, "pages 3 and states 0 must be positive"),
        ("token", {"pages": 3, "states": 6}, "states 6 for a pool that holds no state"),
    ],
)
def test_sizes_that_make_no_sense_are_named(kind: str, sizes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        HostPool(make_device(kind), **sizes)


@pytest.mark.parametrize("kind", ["page-major", "draft-pair", "sliding-window", "virtual"])
def test_pools_whose_ids_are_no_rows_are_refused(kind: str) -> None:
    device = make_device(kind)
    message = f"^no host tier for {type(device).__name__}: ids must be its rows$"
    with pytest.raises(TypeError, match=message):
        HostPool(device, pages=3)


# -- widths ---------------------------------------------------------------------------


def latents(width: int, **changes: Any) -> MLAPool:
    sizes: dict[str, Any] = {"size": 20, "page_size": PAGE, "layers": 3, "device": "cpu"} | changes
    dtype = sizes.pop("dtype", torch.float8_e4m3fn)
    return MLAPool(kv_lora_rank=width - 64, qk_rope_head_dim=64, dtype=dtype, **sizes)


class NominalRows(HostPool):
    """Sized by the model's configuration, as in sglang 37534."""

    def row_of(self, name: str, layers: Sequence[Tensor]) -> Row:
        return Row((1, 576), torch.uint8)


WIDTHS = (
    r"^latent: a host row is 576 bytes, \[1, 576\] of torch.uint8; "
    r"a device row of layer 0 is 656 bytes, \[1, 656\] of torch.uint8$"
)


def test_rows_narrower_than_the_device_rows_are_refused() -> None:
    with pytest.raises(ValueError, match=WIDTHS):
        NominalRows(latents(656), pages=3)


def test_tier_refuses_the_host_pool_of_narrower_rows() -> None:
    host = HostPool(latents(576), pages=3)
    with pytest.raises(ValueError, match=WIDTHS):
        HostTier(latents(656), host, host.allocator())


@pytest.mark.parametrize(
    ("host", "device", "message"),
    [
        (latents(96), latents(96, dtype=torch.bfloat16), "96 bytes.* layer 0 is 192 bytes"),
        (latents(96), latents(96, layers=4), "latent: 3 layers on the host, not 4"),
        (latents(96), latents(96, page_size=5), "host pages hold 4 rows, device pages 5"),
        (make_device("token"), make_device("key-only"), r"has \['k', 'v'\], the device \['k'\]"),
    ],
    ids=["dtype", "layers", "page size", "buffers"],
)
def test_tier_refuses_the_host_pool_of_another_pool(host: Any, device: Any, message: str) -> None:
    pool = HostPool(host, pages=3)
    with pytest.raises(ValueError, match=message):
        HostTier(device, pool, pool.allocator())


def test_rows_of_another_shape_and_the_same_bytes_are_refused() -> None:
    device = make_device("key-only", heads=6, head_dim=4)
    host = HostPool(make_device("key-only", heads=4, head_dim=6), pages=3)
    with pytest.raises(ValueError, match=r"48 bytes, \[4, 6\] .* 48 bytes, \[6, 4\]"):
        HostTier(device, host, host.allocator())


def test_layer_of_another_width_is_named() -> None:
    device = latents(96)
    device.latent[2] = torch.zeros(24, 1, 97, dtype=torch.uint8)
    with pytest.raises(ValueError, match="96 bytes.* device row of layer 2 is 97 bytes"):
        HostPool(device, pages=3)


def test_allocator_that_counts_other_rows_is_refused() -> None:
    tier = make_tier("token")
    wide = HostPool(tier.device_pool, pages=6).allocator()
    message = "^the allocator has 24 ids in pages of 4, the host pool 20 rows in pages of 4$"
    with pytest.raises(ValueError, match=message):
        HostTier(tier.device_pool, tier.host_pool, wide)
