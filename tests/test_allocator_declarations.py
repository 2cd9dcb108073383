"""What `Allocator` and `undefined` accept, what they say of a mistake, and what they switch off."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from torch import Tensor

from conformance import Allocator, HostTier, Known, Pool
from conformance.allocator import ALLOCATOR_CAPABILITIES, ALLOCATOR_KINDS
from conformance.case import Case
from conformance.claims import check_lacking_verbs
from conformance.contract import CLAUSES
from conformance.violation import Violation
from reference_pools.allocators import PagedAllocator, StateSlotAllocator
from reference_pools.declarations import make_hybrid, make_token

WITNESS = "extend r0 by 1; free r0"
TOKEN = Pool("token", make_token, kind="token")
HYBRID = Pool("hybrid", object, kind="hybrid")


def allocator(**arguments: Any) -> Allocator:
    return Allocator(**({"name": "a", "make": object, "pool": TOKEN} | arguments))


# -- Allocator -----------------------------------------------------------------------------


def test_allocator_defaults() -> None:
    made = Allocator("a", object, TOKEN)
    assert (made.name, made.kind, made.lacks, made.undefined) == ("a", "token", (), {})
    assert (made.known, made.level, made.adapter) == ({}, None, None)


def test_allocator_is_frozen_and_equal_to_itself_alone() -> None:
    made = allocator()
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]
    assert made == made
    assert made != allocator()


def test_options_are_passed_by_name() -> None:
    with pytest.raises(TypeError, match="positional"):
        Allocator("a", object, TOKEN, "token")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("kind", "offers"),
    [
        ("token", {"groups", "sharing", "offload"}),
        ("window", {"groups", "sharing", "offload", "window"}),
        ("virtual", {"groups", "sharing", "offload", "virtual"}),
        ("slots", {"groups", "sharing", "zeroing"}),
        ("host", {"groups", "sharing"}),
    ],
)
def test_each_kind_offers_what_it_can(kind: Any, offers: set[str]) -> None:
    assert Allocator("a", object, HYBRID, kind=kind).offers == offers
    lacking = Allocator("a", object, HYBRID, kind=kind, lacks=sorted(ALLOCATOR_CAPABILITIES))
    assert lacking.offers == (offers & {"window", "virtual"}) | {"lacks"}


@pytest.mark.parametrize("kind", ALLOCATOR_KINDS)
def test_every_kind_is_accepted(kind: Any) -> None:
    assert Allocator("a", object, HYBRID, kind=kind).kind == kind


MISTAKES: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"name": "a b"},
        ValueError,
        "Allocator: name must be letters, digits, '-' and '_' (it becomes a test id), got 'a b'",
    ),
    ({"make": 3}, TypeError, "Allocator 'a': make must be callable, got 3"),
    (
        {"adapter": 3},
        TypeError,
        "Allocator 'a': adapter 3 has no available, alloc, free, share, slide, mapping, "
        "begin_group, end_group, clear, compact, translate, offload, reload; "
        "see conformance.adapters.AllocatorAdapter",
    ),
    ({"pool": object}, TypeError, f"Allocator 'a': pool must be a Pool, got {object!r}"),
    (
        {"kind": "pages"},
        ValueError,
        "Allocator 'a': kind 'pages' does not exist; "
        "it must be one of host, slots, token, virtual, window",
    ),
    (
        {"kind": "slot"},
        ValueError,
        "Allocator 'a': kind 'slot' does not exist; did you mean 'slots'?",
    ),
    ({"kind": "slots"}, ValueError, "Allocator 'a': kind 'slots' needs a pool with state"),
    (
        {"lacks": "groups"},
        TypeError,
        "Allocator 'a': lacks must be a collection, e.g. ['groups']",
    ),
    (
        {"lacks": ["group"]},
        ValueError,
        "Allocator 'a': lacks 'group' does not exist; did you mean 'groups'?",
    ),
    (
        {"lacks": ["move"]},
        ValueError,
        "Allocator 'a': lacks 'move' does not exist; "
        "it must be one of groups, offload, sharing, zeroing",
    ),
    (
        {"level": "strickt"},
        ValueError,
        "Allocator 'a': level 'strickt' does not exist; did you mean 'strict'?",
    ),
    (
        {"known": {"ids_are_conserve": Known("r", WITNESS)}},
        ValueError,
        "Allocator 'a': known: no clause is named 'ids_are_conserve'; "
        "did you mean 'ids_are_conserved'?",
    ),
    (
        {"known": {"ids_are_conserved": "r"}},
        TypeError,
        "Allocator 'a': known['ids_are_conserved'] must be a Known, got 'r'",
    ),
    (
        {"known": {"ids_are_conserved": Known("r")}},
        ValueError,
        "Allocator 'a': known['ids_are_conserved'] needs a witness program",
    ),
    (
        {"known": {"companions_travel": Known("r", WITNESS)}},
        ValueError,
        "Allocator 'a': companions_travel belongs in the known of a Pool",
    ),
    (
        {"known": {"override_keeps_names": Known("r")}},
        ValueError,
        "Allocator 'a': override_keeps_names belongs in the known of a Family",
    ),
]


@pytest.mark.parametrize(("arguments", "error", "message"), MISTAKES)
def test_mistake_in_an_allocator(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        allocator(**arguments)
    assert str(caught.value) == message


def test_known_of_a_verb_that_is_lacking_needs_no_witness() -> None:
    """No program is run for it."""
    known = {"lacking_verbs_are_refused": Known("raises TypeError")}
    assert allocator(known=known).known == known


def test_known_of_a_pool_is_not_that_of_an_allocator() -> None:
    with pytest.raises(ValueError, match="ids_are_conserved belongs in the known of an Allocator"):
        Pool("p", object, kind="token", known={"ids_are_conserved": Known("r", WITNESS)})


# -- undefined -----------------------------------------------------------------------------

A_POOL = partial(Pool, "x", object, kind="token")
AN_ALLOCATOR = partial(Allocator, "x", object, TOKEN)
A_HOST_TIER = partial(HostTier, "x", object, TOKEN)


@pytest.mark.parametrize(
    ("declare", "clause"),
    [(A_POOL, "duplicate_ids_are_refused"), (AN_ALLOCATOR, "double_free_is_refused")],
    ids=["pool", "allocator"],
)
def test_strict_clause_can_be_undefined_for_a_reason(
    declare: Callable[..., Any], clause: str
) -> None:
    assert declare(undefined={clause: "callers never do"}).undefined == {clause: "callers never do"}
    for reason in ("", "  ", None, 3):
        with pytest.raises(ValueError, match=rf"'x': undefined\['{clause}'\] needs a reason$"):
            declare(undefined={clause: reason})


@pytest.mark.parametrize(
    ("declare", "undefined", "message"),
    [
        (
            A_POOL,
            "duplicate_id_is_refused",
            "Pool 'x': undefined: no clause is named 'duplicate_id_is_refused'; "
            "did you mean 'duplicate_ids_are_refused'?",
        ),
        (
            A_POOL,
            "companions_travel",
            "Pool 'x': undefined['companions_travel']: only what level strict adds can be "
            "undefined; a failure of a required clause belongs in `known`",
        ),
        (
            A_POOL,
            "double_free_is_refused",
            "Pool 'x': undefined['double_free_is_refused'] is a clause on an Allocator",
        ),
        (
            A_POOL,
            "override_keeps_names",
            "Pool 'x': undefined['override_keeps_names'] is a clause on a Family",
        ),
        (
            AN_ALLOCATOR,
            "double_frees_are_refused",
            "Allocator 'x': undefined: no clause is named 'double_frees_are_refused'; "
            "did you mean 'double_free_is_refused'?",
        ),
        (
            AN_ALLOCATOR,
            "ids_are_conserved",
            "Allocator 'x': undefined['ids_are_conserved']: only what level strict adds can be "
            "undefined; a failure of a required clause belongs in `known`",
        ),
        (
            AN_ALLOCATOR,
            "negative_ids_are_refused",
            "Allocator 'x': undefined['negative_ids_are_refused'] is a clause on a Pool",
        ),
    ],
)
def test_mistake_in_what_is_undefined(
    declare: Callable[..., Any], undefined: str, message: str
) -> None:
    with pytest.raises(ValueError, match="undefined") as caught:
        declare(undefined={undefined: "a reason"})
    assert str(caught.value) == message


@pytest.mark.parametrize("clause", CLAUSES.values(), ids=list(CLAUSES))
def test_exactly_the_strict_clauses_can_be_undefined(clause: Any) -> None:
    declare = {"allocators": AN_ALLOCATOR, "host tiers": A_HOST_TIER}.get(clause.subject, A_POOL)
    if clause.level == "strict" and clause.subject != "signatures":
        assert clause.id in declare(undefined={clause.id: "a reason"}).undefined
    else:
        with pytest.raises(ValueError, match="undefined"):
            declare(undefined={clause.id: "a reason"})


OFF = "undefined={{{clause!r}: 'callers never do'}}"


@pytest.mark.parametrize(
    ("entry", "clause"),
    [
        (
            "Pool('x', make_token, kind='token', level='strict', {off})",
            "duplicate_ids_are_refused",
        ),
        (
            "Allocator('x', object, Pool('p', make_token, kind='token'), level='strict', {off})",
            "double_free_is_refused",
        ),
    ],
    ids=["pool", "allocator"],
)
def test_undefined_clause_makes_no_check(downstream: Any, entry: str, clause: str) -> None:
    def collected(off: str) -> list[str]:
        run = downstream(
            f"[{entry.format(off=off)}]",
            "--collect-only",
            "-k",
            "refused",
            classes="from conformance import Allocator",
        )
        assert run.ret == 0
        return [line for line in run.outlines if "::" in line]

    every = collected("undefined={}")
    assert f"test_kv.py::test_{clause}[x]" in every
    left = collected(OFF.format(clause=clause))
    assert left == [line for line in every if f"test_{clause}[" not in line]


# -- what an allocator lacks ------------------------------------------------------------------


class Refuses(PagedAllocator):
    """Has neither free groups nor sharing nor the verbs of its pool."""

    def _lacking(self, *given: Any, **named: Any) -> Any:
        raise NotImplementedError

    begin_free_group = end_free_group = retain = get_cpu_copy = load_cpu_copy = _lacking


class RefusesTheBegin(Refuses):
    def end_free_group(self) -> None: ...


class RaisesAnother(Refuses):
    def retain(self, ids: Tensor) -> None:
        raise TypeError("no sharing")


class TakesFirst(Refuses):
    def retain(self, ids: Tensor) -> None:
        self.alloc(1)
        raise NotImplementedError


def lacking(cls: type[PagedAllocator], *lacks: str) -> Case:
    declared = Allocator("paged", cls, TOKEN, lacks=lacks)
    case = Case(TOKEN, CLAUSES["lacking_verbs_are_refused"], "cpu", "required", 1)
    case.front = declared
    return case


@pytest.mark.parametrize(
    ("lacks", "calls"), [(("groups",), 2), (("sharing",), 1), (("offload",), 2), ((), 0)]
)
def test_allocator_that_refuses_what_it_lacks(lacks: tuple[str, ...], calls: int) -> None:
    case = lacking(Refuses, *lacks)
    check_lacking_verbs(case)
    assert case.tally.programs == calls


@pytest.mark.parametrize(
    ("cls", "lacks", "told"),
    [
        (PagedAllocator, "groups", "begin_group was accepted: delete 'groups' from lacks"),
        (PagedAllocator, "sharing", "share was accepted: delete 'sharing' from lacks"),
        (PagedAllocator, "offload", "offload was accepted: delete 'offload' from lacks"),
        (RefusesTheBegin, "groups", "end_group was accepted: delete 'groups' from lacks"),
        (RaisesAnother, "sharing", "share raised TypeError, expected NotImplementedError: no sh"),
        (TakesFirst, "sharing", "share refused, but what is available has changed"),
    ],
)
def test_allocator_that_does_not_refuse_what_it_lacks(
    cls: type[PagedAllocator], lacks: str, told: str
) -> None:
    with pytest.raises(Violation) as caught:
        check_lacking_verbs(lacking(cls, lacks))
    assert caught.value.clause == "lacking_verbs_are_refused"
    lines = [line.split(maxsplit=1) for line in str(caught.value).splitlines()]
    evidence = {words[0]: words[1] for words in lines if len(words) == 2}
    assert (evidence["allocator"], evidence["lacks"]) == ("paged", lacks)
    assert evidence["found"].startswith(told)


def test_declaring_an_allocator_imports_neither_torch_nor_hypothesis() -> None:
    code = (
        "import sys, conformance\n"
        "pool = conformance.Pool('p', object, kind='token')\n"
        "conformance.Allocator('a', object, pool)\n"
        "print(sorted({'torch', 'hypothesis'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


class LeavesState(StateSlotAllocator):
    """Hands out state rows as they are."""

    def alloc(self, count: int, held: Tensor | None = None) -> Tensor | None:
        return self.free_list.take(count, self.free_list.start(count, None))


@pytest.mark.parametrize("cls", [StateSlotAllocator, LeavesState])
def test_lack_of_zeroing_is_looked_at(cls: type[StateSlotAllocator]) -> None:
    hybrid = Pool("hybrid", make_hybrid, kind="hybrid")
    slots = Allocator("slots", lambda p: cls(p.state), hybrid, kind="slots", lacks=["zeroing"])
    case = Case(hybrid, CLAUSES["lacking_verbs_are_refused"], "cpu", "required", 1)
    case.front = slots
    if cls is LeavesState:
        check_lacking_verbs(case)
        return
    with pytest.raises(Violation, match="delete 'zeroing' from lacks"):
        check_lacking_verbs(case)


@pytest.mark.parametrize("entry", ["Pool", "Allocator"])
def test_isolation_is_for_the_cpu(downstream: Any, entry: str) -> None:
    pool = 'Pool("p", make_token, kind="token"{})'
    classes = "from conformance import Allocator"
    declared = pool.format(", isolated=True")
    if entry == "Allocator":
        declared = f'Allocator("p", len, {pool.format("")}, isolated=True)'
    result = downstream(f"[{declared}]", "--kv-device=meta", classes=classes)
    assert f"{entry} 'p' is isolated, and --kv-device=meta" in result.stderr.str()
