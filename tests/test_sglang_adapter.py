"""The SGLang adapter, against stand-ins that have the shape of SGLang's classes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.adapters.sglang import SGLang, SGLangAllocator

ADAPTER = SGLangAllocator()


def ids(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


class Recorder:
    """Notes each call: the verb, and its arguments as lists."""

    def __init__(self, **attributes: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.__dict__.update(attributes)

    def note(self, verb: str, *arguments: Any) -> None:
        told = [a.tolist() if isinstance(a, Tensor) else a for a in arguments]
        self.calls.append((verb, *told))


class Paged(Recorder):
    page_size = 4

    def alloc_extend(self, *arguments: Any) -> Tensor:
        self.note("extend", *arguments)
        return ids(8, 9)

    def alloc_decode(self, *arguments: Any) -> Tensor:
        self.note("decode", *arguments)
        return ids(6)


class Window(Recorder):
    def free(self, freed: Tensor) -> None:
        self.note("free", freed)


class NewerWindow(Window):
    def free_full(self, freed: Tensor) -> None:
        self.note("free_full", freed)


def test_extending_passes_lengths_on_both_sides_and_the_last_row() -> None:
    allocator = Paged()
    assert ADAPTER.alloc(allocator, 2, ids(4, 5)).tolist() == [8, 9]
    assert allocator.calls == [("extend", [2], [2], [4], [4], [5], 2)]


def test_a_new_request_has_no_last_row() -> None:
    allocator = Paged()
    ADAPTER.alloc(allocator, 2, ids())
    assert allocator.calls == [("extend", [0], [0], [2], [2], [-1], 2)]


def test_one_more_token_is_a_decode_step() -> None:
    allocator = Paged()
    ADAPTER.alloc(allocator, 1, ids(4, 5))
    assert allocator.calls == [("decode", [3], [3], [5])]


def test_nothing_is_not_asked_for() -> None:
    allocator = Paged()
    assert ADAPTER.alloc(allocator, 0, ids(4, 5)).tolist() == []
    assert allocator.calls == []


def test_tokens_out_of_the_window_are_freed_apart_where_there_is_a_verb() -> None:
    mapping = ids(0, 3, 0, 2)
    newer = NewerWindow(full_to_swa_index_mapping=mapping)
    ADAPTER.free(newer, ids(1, 2, 3))
    assert newer.calls == [("free_full", [2]), ("free", [1, 3])]
    older = Window(full_to_swa_index_mapping=mapping)
    ADAPTER.free(older, ids(1, 2, 3))
    assert older.calls == [("free", [1, 2, 3])]


def test_both_spaces_of_a_window_allocator_are_counted() -> None:
    window = SimpleNamespace(full_available_size=lambda: 8, swa_available_size=lambda: 4)
    assert ADAPTER.available(window) == {"token": 8, "window": 4}
    plain = SimpleNamespace(available_size=lambda: 8)
    assert ADAPTER.available(plain) == {"token": 8}


@pytest.mark.parametrize("verb", ["begin_group", "end_group", "compact"])
def test_verb_that_a_class_has_not_is_lacking(verb: str) -> None:
    with pytest.raises(NotImplementedError, match="SimpleNamespace has no"):
        getattr(ADAPTER, verb)(SimpleNamespace())


def test_sharing_is_lacking() -> None:
    with pytest.raises(NotImplementedError):
        ADAPTER.share(Paged(), ids(4))


def test_every_optional_keyword_of_the_allocator_is_passed() -> None:
    seen: dict[str, Any] = {}

    class Front:
        def get_cpu_copy(
            self, indices: Tensor, mamba_indices: Any = None, req_pool_index: Any = None
        ) -> str:
            seen.update(mamba=mamba_indices, request=req_pool_index)
            return "copy"

    assert SGLang(lambda _: Front()).offload(None, ids(4), ids(1)) == "copy"
    assert seen["mamba"].tolist() == [1]
    assert seen["request"] is None


def test_window_rows_are_found_by_the_mapping() -> None:
    layers = [torch.zeros(9, 2)]
    sub = SimpleNamespace(k_buffer=layers, v_buffer=layers)
    pool = SimpleNamespace(
        full_kv_pool=sub, swa_kv_pool=sub, full_to_swa_index_mapping=ids(0, 0, 5, 4, -1)
    )
    adapter = SGLang(lambda pool: pool)
    assert set(adapter.buffers(pool) or ()) == {"k", "v", "window_k", "window_v"}
    locate = adapter.locate(pool, "window_k")
    assert locate is not None
    assert locate(ids(1, 2, 3)).tolist() == [-1, 5, 4]
    assert adapter.locate(pool, "k") is None
