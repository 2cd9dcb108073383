"""Signature rules, on classes as people write them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance import Family
from conformance.contract import CLAUSES
from conformance.signatures.family import ClassCase
from conformance.signatures.live import member_of, signature_of
from conformance.signatures.rules import RULES
from conformance.violation import Violation

VERBS = ("get_cpu_copy", "load_cpu_copy", "move_kv_cache")


class Root:
    def get_cpu_copy(self, indices: Any, mamba_indices: Any = None) -> Any: ...

    def load_cpu_copy(self, kv_cache_cpu: Any, indices: Any, mamba_indices: Any = None) -> None: ...

    def move_kv_cache(self, tgt_loc: Any, src_loc: Any) -> None: ...


def fires(cls: type, root: type = Root) -> dict[str, list[str]]:
    """Every problem of `cls`, by the clause that tells it."""
    members = member_of(root, root, VERBS), member_of(cls, root, VERBS)
    told = {
        clause: [p.text for p in rule(*members, VERBS) if not p.only_if_met]
        for clause, rule in RULES.items()
    }
    return {clause: problems for clause, problems in told.items() if problems}


def overriding(**verbs: Any) -> type:
    """A subclass of `Root` with these methods."""
    return type("Sub", (Root,), verbs)


def wrapped(verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return verb(*args, **kwargs)

    return wrapper


def opaque(verb: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return verb(*args, **kwargs)

    return wrapper


def test_every_signature_clause_has_a_rule() -> None:
    on_classes = {
        c.id for c in CLAUSES.values() if c.subject == "signatures" and "source" not in c.needs
    }
    assert set(RULES) == on_classes - {"every_subclass_is_covered"}


# -- overrides that keep every rule -----------------------------------------------------


def as_root(self, indices, mamba_indices=None): ...


def with_more(self, indices, mamba_indices=None, **kwargs): ...


def forwards_all(self, *args, **kwargs): ...


def forwards_keywords(self, indices, **kwargs): ...


def forwards_positions(self, indices, *args, mamba_indices=None, **kwargs): ...


@staticmethod
def static(indices, mamba_indices=None): ...


@classmethod
def on_class(cls, indices, mamba_indices=None): ...


@pytest.mark.parametrize(
    "verb",
    [
        as_root,
        with_more,
        forwards_all,
        forwards_positions,
        static,
        on_class,
        wrapped(as_root),
        opaque(as_root),
        torch.no_grad()(as_root),
        torch.inference_mode()(as_root),
        functools.cache(as_root),
    ],
    ids=lambda verb: getattr(verb, "__name__", "verb"),
)
def test_override_that_keeps_every_rule(verb: Any) -> None:
    assert fires(overriding(get_cpu_copy=verb)) == {}


def test_class_that_overrides_nothing() -> None:
    assert fires(overriding()) == {}


def test_override_inherited_from_a_mixin_is_looked_at() -> None:
    class Mixin:
        def get_cpu_copy(self, indices: Any) -> Any: ...

    cls = type("Sub", (Mixin, Root), {})
    assert set(fires(cls)) == {"override_accepts_every_keyword"}


# -- one fault, one rule ------------------------------------------------------------------


def lacks_keyword(self, indices): ...


def keyword_is_positional_only(self, indices, mamba_indices=None, /): ...


def keyword_is_keyword_only(self, indices, *, mamba_indices=None): ...


def renamed_first(self, loc, mamba_indices=None): ...


def first_is_positional_only(self, indices, /, mamba_indices=None): ...


def extra_required(self, indices, mamba_indices=None, *, layer): ...


def keyword_is_required(self, indices, mamba_indices): ...


def other_default(self, indices, mamba_indices=()): ...


@pytest.mark.parametrize(
    ("verb", "clause", "problem"),
    [
        (
            lacks_keyword,
            "override_accepts_every_keyword",
            "get_cpu_copy(indices) does not accept mamba_indices=, which Root does",
        ),
        (
            renamed_first,
            "override_keeps_names",
            "get_cpu_copy(loc, mamba_indices=None) has no parameter named indices, as on Root",
        ),
        (
            first_is_positional_only,
            "override_keeps_names",
            "get_cpu_copy(indices, /, mamba_indices=None) has no parameter named indices, "
            "as on Root",
        ),
        (
            extra_required,
            "override_requires_nothing_more",
            "get_cpu_copy(indices, mamba_indices=None, *, layer) requires layer, "
            "which Root does not",
        ),
        (
            other_default,
            "override_keeps_defaults",
            "get_cpu_copy(indices, mamba_indices=()): mamba_indices defaults to (), "
            "on Root to None",
        ),
        (
            keyword_is_positional_only,
            "override_accepts_every_keyword",
            "get_cpu_copy(indices, mamba_indices=None, /) does not accept mamba_indices=, "
            "which Root does",
        ),
        (
            keyword_is_keyword_only,
            "override_binds_by_position",
            "get_cpu_copy(indices, *, mamba_indices=None) takes 1 positional arguments, "
            "mamba_indices is one more",
        ),
        (
            forwards_keywords,
            "override_binds_by_position",
            "get_cpu_copy(indices, **kwargs) takes 1 positional arguments, "
            "mamba_indices is one more",
        ),
        (
            torch.no_grad()(lacks_keyword),
            "override_accepts_every_keyword",
            "get_cpu_copy(indices) does not accept mamba_indices=, which Root does",
        ),
        (
            wrapped(renamed_first),
            "override_keeps_names",
            "get_cpu_copy(loc, mamba_indices=None) has no parameter named indices, as on Root",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_one_fault_is_told_by_its_own_rule(verb: Any, clause: str, problem: str) -> None:
    told = fires(overriding(get_cpu_copy=verb))
    assert problem in told[clause]
    if verb is not keyword_is_positional_only:
        assert told == {clause: [problem]}


@pytest.mark.parametrize("wrap", [staticmethod, classmethod])
def test_static_and_class_methods_lose_their_own_first_parameter_only(wrap: Any) -> None:
    def short(indices, mamba_indices=None): ...

    def long(cls, indices, mamba_indices=None): ...

    cls = overriding(get_cpu_copy=wrap(short if wrap is staticmethod else long))
    assert list(signature_of(cls, "get_cpu_copy").parameters) == ["indices", "mamba_indices"]


def reload_swapped(self, indices, kv_cache_cpu, mamba_indices=0): ...


def test_swapped_order_is_told_with_both_places() -> None:
    told = fires(overriding(load_cpu_copy=reload_swapped))
    assert told["override_binds_by_position"] == [
        "load_cpu_copy(indices, kv_cache_cpu, mamba_indices=0): positional argument 1 is "
        "kv_cache_cpu on Root, here kv_cache_cpu is argument 2",
        "load_cpu_copy(indices, kv_cache_cpu, mamba_indices=0): positional argument 2 is "
        "indices on Root, here indices is argument 1",
    ]


def move_swapped(self, src_loc, tgt_loc): ...


def test_swapped_order_with_the_same_defaults_is_told_by_position_alone() -> None:
    told = fires(overriding(move_kv_cache=move_swapped))
    assert set(told) == {"override_binds_by_position"}


def test_keyword_that_became_required() -> None:
    told = fires(overriding(get_cpu_copy=keyword_is_required))
    assert told["override_requires_nothing_more"] == [
        "get_cpu_copy(indices, mamba_indices) requires mamba_indices, which Root does not"
    ]
    assert "override_accepts_every_keyword" not in told


# -- the pair ------------------------------------------------------------------------------


def offload_with_keyword(self, indices, mamba_indices=None, *, req_pool_index=None): ...


def reload_with_keyword(
    self, kv_cache_cpu, indices, mamba_indices=None, *, req_pool_index=None
): ...


def test_keyword_on_both_halves() -> None:
    cls = overriding(get_cpu_copy=offload_with_keyword, load_cpu_copy=reload_with_keyword)
    assert fires(cls) == {}


@pytest.mark.parametrize(
    ("verbs", "has", "lacks"),
    [
        ({"get_cpu_copy": offload_with_keyword}, "get_cpu_copy", "load_cpu_copy"),
        ({"load_cpu_copy": reload_with_keyword}, "load_cpu_copy", "get_cpu_copy"),
    ],
)
def test_keyword_on_one_half_only(verbs: Any, has: str, lacks: str) -> None:
    told = fires(overriding(**verbs))
    assert set(told) == {"pair_accepts_the_same_keywords"}
    (problem,) = told["pair_accepts_the_same_keywords"]
    assert problem.startswith(f"{has}(")
    assert f"accepts req_pool_index=, {lacks}(" in problem


def move_with_keyword(self, tgt_loc, src_loc, stream=None): ...


def test_keyword_added_to_another_verb_needs_no_partner() -> None:
    cls = overriding(move_kv_cache=move_with_keyword)
    assert fires(cls) == {}


# -- the case that a check runs -------------------------------------------------------------


def reload_lacks_keyword(self, kv_cache_cpu, indices): ...


def test_violation_names_family_class_and_every_problem() -> None:
    cls = overriding(get_cpu_copy=lacks_keyword, load_cpu_copy=reload_lacks_keyword)
    case = ClassCase(Family(Root), CLAUSES["override_accepts_every_keyword"], "Sub", cls)
    with pytest.raises(Violation) as caught:
        case.check()
    assert caught.value.clause == "override_accepts_every_keyword"
    text = str(caught.value)
    assert f"family    {__name__}.Root" in text
    assert f"class     {__name__}.Sub" in text
    assert text.count("does not accept mamba_indices=") == 2


@pytest.mark.parametrize(
    ("covered", "exempt", "problem"),
    [
        (True, False, None),
        (False, True, None),
        (False, False, "no Pool makes this class, and no exemption gives a reason"),
        (True, True, "it has a Pool and is exempt too: delete the exemption"),
    ],
)
def test_coverage_gate(covered: bool, exempt: bool, problem: str | None) -> None:
    cls = overriding()
    family = Family(Root, exempt={cls: "a reason"} if exempt else {})
    case = ClassCase(family, CLAUSES["every_subclass_is_covered"], "Sub", cls, covered)
    if problem is None:
        case.check()
        return
    with pytest.raises(Violation) as caught:
        case.check()
    assert problem in str(caught.value)
