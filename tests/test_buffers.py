"""The second door: what is found in a pool, and how its rows are read and written."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from conformance import Pool
from conformance.adapters.plain import Plain
from conformance.buffers import Inventory, take_inventory
from conformance.geometry import Geometry, geometries
from reference_pools.declarations import ATTENTION, make_hybrid

ALL_KINDS = {
    "token": Pool("token", object, kind="token"),
    "mla": Pool("mla", object, kind="mla"),
    "dsa": Pool("dsa", object, kind="dsa"),
    "hybrid": Pool("hybrid", object, kind="hybrid"),
}


def geometry_of(kind: str) -> Geometry:
    return geometries(ALL_KINDS[kind])[0]


G = geometry_of("hybrid")
D = geometry_of("dsa")


class Undeclared:
    """A pool that says nothing of its buffers."""

    def __init__(self, **tensors: Any) -> None:
        self.__dict__.update(tensors)


def token_rows(width: int = 8, dtype: torch.dtype = torch.bfloat16, n: int | None = None) -> Tensor:
    return torch.zeros(G.token_rows if n is None else n, 7, width, dtype=dtype)


def inventory(geometry: Geometry = G, metadata: Any = (), **tensors: Any) -> Inventory:
    return take_inventory(Undeclared(**tensors), geometry, Plain(metadata))


def found(told: Inventory) -> list[tuple[str, str, str, int]]:
    return [(b.name, b.unit, b.role, len(b.rows)) for b in told.buffers]


# -- discovery ------------------------------------------------------------------------


def test_lists_of_layers_are_one_buffer_each() -> None:
    told = inventory(
        k_buffer=[token_rows() for _ in range(3)], v_buffer=[token_rows(11) for _ in range(3)]
    )
    assert sorted(found(told)) == [("k", "token", "payload", 3), ("v", "token", "payload", 3)]
    assert told.unaccounted == ()
    assert {b.first_layer for b in told.buffers} == {G.first_layer}


def test_one_tensor_with_layers_first_is_one_buffer_of_every_layer() -> None:
    told = inventory(kv=torch.zeros(3, G.token_rows, 5))
    assert found(told) == [("kv", "token", "payload", 3)]


def test_page_rows_are_a_companion() -> None:
    told = inventory(index_k=[torch.zeros(G.page_rows, 90, dtype=torch.uint8) for _ in range(3)])
    assert found(told) == [("index_k", "page", "companion", 3)]


@pytest.mark.parametrize("name", ["k_scale", "index_keys", "quant_params"])
def test_token_rows_with_such_a_name_are_a_companion(name: str) -> None:
    assert found(inventory(**{name: [token_rows()]})) == [(name, "token", "companion", 1)]


def test_state_with_layers_first_is_one_buffer_of_every_layer() -> None:
    told = inventory(
        conv=[torch.zeros(4, G.state_rows, 13, 3)], temporal=torch.zeros(4, G.state_rows, 7)
    )
    assert sorted(found(told)) == [
        ("conv[0]", "state", "state", 4),
        ("temporal", "state", "state", 4),
    ]
    assert {b.first_layer for b in told.buffers} == {0}


def test_state_rows_mean_nothing_to_a_pool_without_state() -> None:
    told = inventory(geometry_of("token"), conv=torch.zeros(4, G.state_rows, 13))
    assert (found(told), told.unaccounted) == ([], ("conv",))


def test_payload_comes_first_then_companions_then_state() -> None:
    told = inventory(
        conv=torch.zeros(4, G.state_rows, 13), k_scale=[token_rows(1)], k_buffer=[token_rows()]
    )
    assert [b.role for b in told.buffers] == ["payload", "companion", "state"]


def test_view_of_a_buffer_is_counted_once_and_accounted_for() -> None:
    k = token_rows()
    told = inventory(k_buffer=k, alias=k.view(torch.int16), all_layers=[k])
    assert found(told) == [("k", "token", "payload", 1)]
    assert told.unaccounted == ()


def test_view_of_part_of_a_buffer_does_not_hide_the_rest() -> None:
    k = token_rows()
    told = inventory(k_buffer=[k], half=k[:, :3])
    assert sum(buffer.row_bytes for buffer in told.buffers) == k[0].nbytes


def test_view_into_the_middle_of_a_row_is_no_second_buffer() -> None:
    k = token_rows()
    told = inventory(k_buffer=[k], tail=k[:, 3:])
    assert sum(buffer.row_bytes for buffer in told.buffers) == k[0].nbytes


def test_same_last_name_in_two_places_keeps_the_paths() -> None:
    full, swa = (Undeclared(k_buffer=[token_rows()]) for _ in range(2))
    told = inventory(full=full, swa=swa)
    assert sorted(b.name for b in told.buffers) == ["full.k_buffer", "swa.k_buffer"]


def test_nested_pools_are_searched() -> None:
    told = inventory(full=Undeclared(k_buffer=[token_rows()]), pools=[{"x": token_rows(5)}])
    assert sorted(b.name for b in told.buffers) == ["k", "pools[0]['x']"]


@pytest.mark.parametrize(
    "tensor",
    [torch.zeros(10, 10), torch.zeros(G.token_rows, G.token_rows), torch.tensor(1.0)],
    ids=["no row axis", "two row axes", "scalar"],
)
def test_tensor_that_is_no_buffer_is_told(tensor: Tensor) -> None:
    told = inventory(k_buffer=[token_rows()], table=tensor)
    assert [b.name for b in told.buffers] == ["k"]
    assert told.unaccounted == ("table",)


@pytest.mark.parametrize(
    ("metadata", "unaccounted"),
    [
        ((), ("ptrs", "inner.ptrs")),
        (("ptrs",), ("inner.ptrs",)),
        (("*ptrs",), ()),
        (("inner.*",), ("ptrs",)),
        (("ptr",), ("ptrs", "inner.ptrs")),
    ],
)
def test_metadata_patterns_match_whole_paths(metadata: Any, unaccounted: Any) -> None:
    told = inventory(
        metadata=metadata,
        k_buffer=[token_rows()],
        ptrs=torch.zeros(10),
        inner=Undeclared(ptrs=torch.zeros(10)),
    )
    assert sorted(told.unaccounted) == sorted(unaccounted)


@pytest.mark.parametrize("tensor", [torch.zeros(0), torch.zeros(10, device="meta")])
def test_empty_tensor_and_other_device_need_no_account(tensor: Tensor) -> None:
    assert inventory(k_buffer=[token_rows()], other=tensor).unaccounted == ()


# -- what a pool declares ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["token", "mla", "dsa"])
def test_found_buffers_of_a_reference_pool_are_those_it_declares(kind: str) -> None:
    geometry = geometry_of(kind)
    made = ATTENTION[kind](geometry)
    declared = take_inventory(made, geometry, Plain())
    undeclared = take_inventory(Undeclared(**vars(made)), geometry, Plain())
    assert sorted(found(undeclared)) == sorted(found(declared))
    assert declared.unaccounted == ()


def test_hybrid_declares_attention_and_state() -> None:
    told = take_inventory(make_hybrid(G), G, Plain())
    assert found(told) == [
        ("k", "token", "payload", 3),
        ("v", "token", "payload", 3),
        ("conv", "state", "state", 4),
        ("temporal", "state", "state", 4),
    ]


def test_declared_tensor_without_a_row_axis() -> None:
    pool = Undeclared(buffers=lambda: {"k": [torch.zeros(10, 8)]})
    with pytest.raises(ValueError, match=r"^buffer 'k': no row axis in shape \(10, 8\)") as caught:
        take_inventory(pool, G, Plain())
    assert str(caught.value).endswith(
        f"expected {G.token_rows} token, {G.page_rows} page or {G.state_rows} state rows on axis 0"
    )


def test_rows_that_are_not_contiguous() -> None:
    with pytest.raises(
        ValueError, match="^buffer 'k': a row must be contiguous in memory"
    ) as caught:
        inventory(k_buffer=[torch.zeros(G.token_rows, 8, 7).transpose(1, 2)])
    assert str(caught.value).endswith(f"got shape ({G.token_rows}, 7, 8) with strides (56, 1, 7)")


def test_rows_with_room_between_them_are_contiguous() -> None:
    told = inventory(k_buffer=[torch.zeros(G.token_rows, 30)[:, :8]])
    assert told.buffers[0].width == 32


# -- bytes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "width"),
    [
        (torch.float8_e4m3fn, 56),
        (torch.float8_e5m2, 56),
        (torch.uint8, 56),
        (torch.bfloat16, 112),
        (torch.float32, 224),
    ],
)
def test_rows_are_bytes_of_any_dtype(dtype: torch.dtype, width: int) -> None:
    (buffer,) = inventory(k_buffer=[token_rows(dtype=dtype)]).buffers
    assert (buffer.rows[0].dtype, buffer.width, buffer.row_bytes) == (torch.uint8, width, width)
    assert buffer.cells == G.token_rows


def test_scatter_reaches_the_pool_and_gather_reads_it() -> None:
    layers = [token_rows(dtype=torch.float16) for _ in range(3)]
    (buffer,) = inventory(k_buffer=layers).buffers
    ids = torch.tensor([9, 5])
    payload = torch.arange(3 * 2 * 112, dtype=torch.int64).to(torch.uint8).reshape(3, 2, 112)
    buffer.scatter(ids, payload)
    assert torch.equal(layers[1][9].flatten().view(torch.uint8), payload[1, 0])
    assert torch.equal(buffer.gather(ids), payload)
    assert not layers[1][6].any()
    layers[2].zero_()
    assert torch.equal(buffer.gather(ids)[2], torch.zeros(2, 112, dtype=torch.uint8))


def test_gather_is_a_new_tensor() -> None:
    layer = token_rows()
    (buffer,) = inventory(k_buffer=[layer]).buffers
    buffer.gather(torch.tensor([5])).fill_(1)
    assert not layer.any()


def test_fill_writes_every_row() -> None:
    layer = token_rows(dtype=torch.uint8)
    (buffer,) = inventory(k_buffer=[layer]).buffers
    buffer.fill(torch.full((1, G.token_rows, 56), 7, dtype=torch.uint8))
    assert bool((layer == 7).all())


def test_slots_of_an_index_page_are_addressed_by_token() -> None:
    made = ATTENTION["dsa"](D)
    index_k = take_inventory(made, D, Plain()).buffers[1]
    assert (index_k.unit, index_k.addressed_by) == ("page", "token")
    assert (index_k.width, index_k.cells) == (D.index_head_dim + 4, D.token_rows)
    token = 2 * D.page_size + 3
    index_k.scatter(torch.tensor([token]), torch.full((3, 1, index_k.width), 7, dtype=torch.uint8))
    keys, scales = made.slots(made.index_k[0])
    assert keys.flatten(0, 1).any(1).nonzero().flatten().tolist() == [token]
    assert scales.flatten(0, 1).any(1).nonzero().flatten().tolist() == [token]
    assert int(made.index_k[0].sum()) == 7 * index_k.width


@pytest.mark.parametrize("extra", [1, 8])
def test_page_rows_of_another_layout_are_addressed_by_page(extra: int) -> None:
    width = D.page_size * (D.index_head_dim + 4) + extra
    (buffer,) = inventory(D, index_k=[torch.zeros(D.page_rows, width, dtype=torch.uint8)]).buffers
    assert (buffer.addressed_by, buffer.columns, buffer.cells) == ("page", None, D.page_rows)
