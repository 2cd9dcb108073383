"""What `Pool`, `Family` and `Known` accept, and what they say of a mistake."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from conformance import Family, Known, Pool
from conformance.adapters.plain import Plain
from conformance.contract import CLAUSES, applies, find_clause
from conformance.pool import CONSTRAINTS

WITNESS = "write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5"


class Root:
    def get_cpu_copy(self, indices: Any) -> Any: ...

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any) -> None: ...


class NoReload:
    def get_cpu_copy(self, indices: Any) -> Any: ...


class Unwaiting:
    """An adapter of before there was `wait`."""

    metadata: Sequence[str] = ()
    offload = reload = move = copy_state = buffers = locate = Plain.offload

    def __repr__(self) -> str:
        return "Unwaiting()"


def pool(**arguments: Any) -> Pool:
    return Pool(**({"name": "p", "make": object, "kind": "token"} | arguments))


# -- Pool ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "attention", "ids", "has_state"),
    [
        ("token", "token", "token", False),
        ("mla", "mla", "token", False),
        ("dsa", "dsa", "page", False),
        ("hybrid", "token", "token", True),
    ],
)
def test_pool_defaults(kind: Any, attention: str, ids: str, has_state: bool) -> None:
    made = Pool("p", object, kind=kind)
    assert (made.attention, made.ids, made.has_state) == (attention, ids, has_state)
    assert (made.lacks, made.known, made.level, made.adapter) == (frozenset(), {}, None, None)
    assert made.constraints == {}


@pytest.mark.parametrize(
    ("attention", "ids"), [("token", "token"), ("mla", "token"), ("dsa", "page")]
)
def test_hybrid_pool_has_the_ids_of_its_attention(attention: Any, ids: str) -> None:
    made = Pool("p", object, kind="hybrid", attention=attention)
    assert (made.attention, made.ids) == (attention, ids)


@pytest.mark.parametrize(("kind", "ids"), [("dsa", "token"), ("token", "page")])
def test_ids_override_the_default_of_the_kind(kind: Any, ids: Any) -> None:
    assert Pool("p", object, kind=kind, ids=ids).ids == ids


def test_pool_keeps_what_it_is_given() -> None:
    known = {"copy_size_is_bounded": Known("too large", WITNESS)}
    made = pool(lacks=["offload"], known=known, level="strict", page_sizes=[3, 1], pages={5})
    assert made.lacks == frozenset({"offload"})
    assert made.known == known
    assert made.level == "strict"
    assert made.constraints == {"page_sizes": (3, 1), "pages": (5,)}


def test_pool_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        pool().name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["p", "hybrid-dsa", "my_pool2", "-p"])
def test_name_that_can_be_a_test_id(name: str) -> None:
    assert pool(name=name).name == name


@pytest.mark.parametrize("name", ["", "a b", "a[1]", "a/b", "2nd", None, 3])
def test_name_that_cannot_be_a_test_id(name: Any) -> None:
    with pytest.raises(ValueError, match=r"Pool: name must be letters, digits") as caught:
        pool(name=name)
    assert str(caught.value).endswith(f"got {name!r}")


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_every_constraint_is_accepted(constraint: str) -> None:
    value = torch.float16 if constraint == "dtypes" else 9
    assert pool(**{constraint: [value]}).constraints == {constraint: (value,)}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"make": 3}, TypeError, "Pool 'p': make must be callable, got 3"),
        (
            {"adapter": Unwaiting()},
            TypeError,
            "Pool 'p': adapter Unwaiting() has no wait, zero_state; "
            "see conformance.adapters.Adapter",
        ),
        (
            {"kind": "tokn"},
            ValueError,
            "Pool 'p': kind 'tokn' does not exist; did you mean 'token'?",
        ),
        (
            {"kind": "KV"},
            ValueError,
            "Pool 'p': kind 'KV' does not exist; it must be one of dsa, hybrid, mla, token",
        ),
        (
            {"kind": "dsa", "attention": "mla"},
            ValueError,
            "Pool 'p': attention is for kind 'hybrid', not 'dsa'",
        ),
        (
            {"kind": "hybrid", "attention": "hybrid"},
            ValueError,
            "Pool 'p': attention 'hybrid' does not exist; it must be one of dsa, mla, token",
        ),
        (
            {"ids": "pages"},
            ValueError,
            "Pool 'p': ids 'pages' does not exist; did you mean 'page'?",
        ),
        (
            {"lacks": "offload"},
            TypeError,
            "Pool 'p': lacks must be a collection, e.g. ['offload']",
        ),
        (
            {"lacks": ["ofload"]},
            ValueError,
            "Pool 'p': lacks 'ofload' does not exist; did you mean 'offload'?",
        ),
        (
            {"level": "strickt"},
            ValueError,
            "Pool 'p': level 'strickt' does not exist; did you mean 'strict'?",
        ),
        (
            {"page_size": [4]},
            ValueError,
            "Pool 'p': constraint 'page_size' does not exist; did you mean 'page_sizes'?",
        ),
        (
            {"page_sizes": 4},
            TypeError,
            "Pool 'p': page_sizes must be a sequence of allowed values, got 4",
        ),
        (
            {"page_sizes": []},
            TypeError,
            "Pool 'p': page_sizes must be a sequence of allowed values, got []",
        ),
        (
            {"dtypes": "float16"},
            TypeError,
            "Pool 'p': dtypes must be a sequence of allowed values, got 'float16'",
        ),
        (
            {"known": {"companion_travel": Known("r", WITNESS)}},
            ValueError,
            "Pool 'p': known: no clause is named 'companion_travel'; "
            "did you mean 'companions_travel'?",
        ),
        (
            {"known": {"companions_travel": "r"}},
            TypeError,
            "Pool 'p': known['companions_travel'] must be a Known, got 'r'",
        ),
        (
            {"known": {"override_keeps_names": Known("r", WITNESS)}},
            ValueError,
            "Pool 'p': override_keeps_names belongs in the known of a Family",
        ),
        (
            {"known": {"companions_travel": Known("r")}},
            ValueError,
            "Pool 'p': known['companions_travel'] needs a witness program",
        ),
    ],
)
def test_mistake_in_a_pool(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        pool(**arguments)
    assert str(caught.value) == message


# -- Known -----------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["", " ", "\n"])
def test_known_needs_a_reason(reason: str) -> None:
    with pytest.raises(ValueError, match="^Known needs a reason, got an empty one$"):
        Known(reason)


@pytest.mark.parametrize(
    ("link", "text"),
    [(None, "loses scales"), ("https://x.org/1", "loses scales (https://x.org/1)")],
)
def test_known_as_text(link: str | None, text: str) -> None:
    assert str(Known("loses scales", link=link)) == text


# -- Family ----------------------------------------------------------------------------


def test_family_defaults() -> None:
    family = Family(Root)
    assert family.name == "Root"
    assert family.verbs == ("get_cpu_copy", "load_cpu_copy", "move_kv_cache")
    assert (family.packages, family.exempt, family.known, family.level) == ((), {}, {}, None)


def test_family_known_needs_no_witness() -> None:
    known = {"Sub": {"override_keeps_names": Known("r")}}
    assert Family(Root, known=known).known == known


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"root": Root()}, TypeError, "Family: root must be a class, got <"),
        (
            {"packages": "engine"},
            TypeError,
            "Family Root: packages must be a list, e.g. ['engine']",
        ),
        (
            {"exempt": {"engine.Sub": " "}},
            ValueError,
            "Family Root: exemption of 'engine.Sub' needs a reason",
        ),
        (
            {"exempt": {"engine.Sub": None}},
            ValueError,
            "Family Root: exemption of 'engine.Sub' needs a reason",
        ),
        (
            {"exempt": {NoReload: ""}},
            ValueError,
            f"Family Root: exemption of {NoReload!r} needs a reason",
        ),
        (
            {"known": {"Sub": {"override_keep_names": Known("r")}}},
            ValueError,
            "Family Root, class Sub: known: no clause is named 'override_keep_names'; "
            "did you mean 'override_keeps_names'?",
        ),
        (
            {"known": {"Sub": {"override_keeps_names": 3}}},
            TypeError,
            "Family Root, class Sub: known['override_keeps_names'] must be a Known, got 3",
        ),
        (
            {"known": {"Sub": {"companions_travel": Known("r", WITNESS)}}},
            ValueError,
            "Family Root, class Sub: companions_travel belongs in the known of a Pool",
        ),
        (
            {"verbs": ("get_cpu_copy",)},
            ValueError,
            "Family Root: verbs must name offload and reload, got ('get_cpu_copy',)",
        ),
        (
            {"root": NoReload},
            ValueError,
            "Family NoReload: the root has no method 'load_cpu_copy'",
        ),
        (
            {"level": "require"},
            ValueError,
            "Family Root: level 'require' does not exist; did you mean 'required'?",
        ),
    ],
)
def test_mistake_in_a_family(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        Family(**({"root": Root} | arguments))
    assert str(caught.value).startswith(message)


# -- the contract that declarations name ----------------------------------------------


def test_find_clause_with_nothing_near_lists_every_name() -> None:
    with pytest.raises(ValueError, match="no clause is named 'zzz'; it must be one of ") as caught:
        find_clause("zzz")
    assert all(clause in str(caught.value) for clause in CLAUSES)


@pytest.mark.parametrize(
    ("clause", "level", "version", "applied"),
    [
        ("companions_travel", "required", 1, True),
        ("companions_travel", "strict", 1, True),
        ("companions_travel", "strict", 0, False),
        ("negative_ids_are_refused", "required", 1, False),
        ("negative_ids_are_refused", "strict", 1, True),
    ],
)
def test_level_and_version_decide_which_clauses_apply(
    clause: str, level: Any, version: int, applied: bool
) -> None:
    assert applies(CLAUSES[clause], level=level, version=version) is applied


def test_declaring_imports_neither_torch_nor_hypothesis() -> None:
    code = (
        "import sys, conformance, conformance.plugin\n"
        "conformance.Pool('p', object, kind='token')\n"
        "print(sorted({'torch', 'hypothesis'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
