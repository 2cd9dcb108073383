"""Which tensors an object reaches, and by which path."""

from __future__ import annotations

import collections
import dataclasses
import types
from typing import Any

import pytest
import torch
from torch import nn

from conformance.walk import tensors_in

T = torch.zeros(3)


def paths(root: object, skip: object = None) -> list[str]:
    return sorted(path for path, _ in tensors_in(root, skip))


class Slotted:
    __slots__ = ("a", "b", "unset")

    def __init__(self) -> None:
        self.a, self.b = torch.zeros(1), [torch.zeros(1)]


class SlottedToo(Slotted):
    __slots__ = "c"

    def __init__(self) -> None:
        super().__init__()
        self.c = torch.zeros(1)


class OneSlot(Slotted):
    def __init__(self) -> None:
        super().__init__()
        self.d = torch.zeros(1)


@dataclasses.dataclass
class Action:
    x: Any

    def __call__(self) -> None: ...


Pair = collections.namedtuple("Pair", ["left", "right"])


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (T, [""]),
        ([T], ["[0]"]),
        ((1, T), ["[1]"]),
        ({"k": T}, ["['k']"]),
        ({3: [T]}, ["[3][0]"]),
        (types.MappingProxyType({"k": T}), ["['k']"]),
        (collections.OrderedDict(k=T), ["['k']"]),
        ({T}, ["[0]"]),
        (Pair(1, T), ["[1]"]),
        (types.SimpleNamespace(a=types.SimpleNamespace(b=[T])), ["a.b[0]"]),
        (Slotted(), ["a", "b[0]"]),
        (SlottedToo(), ["a", "b[0]", "c"]),
        (OneSlot(), ["a", "b[0]", "d"]),
        (Action(T), ["x"]),
        (nn.Linear(3, 4), ["_parameters['bias']", "_parameters['weight']"]),
        ([None, 3, "x", b"x", 1.5, torch.float16, torch.device("cpu"), T.shape], []),
        ([lambda: T, nn, Slotted], []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_paths(root: object, expected: list[str]) -> None:
    assert paths(root) == expected


def test_tensor_reached_twice_is_told_once() -> None:
    tensor = torch.zeros(3)
    assert len(paths({"a": tensor, "b": [tensor], "c": types.SimpleNamespace(d=tensor)})) == 1


def test_views_are_tensors_of_their_own() -> None:
    tensor = torch.zeros(3, 4)
    assert paths({"a": tensor, "b": tensor[0]}) == ["['a']", "['b']"]


def test_cycles_end() -> None:
    node = types.SimpleNamespace(tensor=torch.zeros(1))
    node.itself, node.all = node, [node]
    assert paths(node) == ["tensor"]


def test_skipped_object_is_not_entered() -> None:
    pool = types.SimpleNamespace(k=torch.zeros(1))
    assert paths({"pool": pool, "rows": torch.zeros(1)}, skip=pool) == ["['rows']"]


def test_the_tensors_themselves_are_told() -> None:
    tensor = torch.zeros(3)
    ((_, told),) = tensors_in({"k": tensor})
    assert told is tensor
