"""The clauses are well formed, are found by name, and apply to something."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from conformance import Allocator, HostTier, Pool
from conformance.allocator import ALLOCATOR_CAPABILITIES, ALLOCATOR_KINDS
from conformance.contract import (
    CLAUSES,
    LEVELS,
    VERSION,
    Clause,
    Need,
    Subject,
    allocators,
    did_you_mean,
    find_clause,
    host_tiers,
    pools,
    signatures,
    timing,
)
from conformance.host_tier import HOST_TIER_CAPABILITIES
from conformance.pool import CAPABILITIES, KINDS

each_clause = pytest.mark.parametrize("clause", CLAUSES.values(), ids=list(CLAUSES))

VERB_OF: dict[Subject, Need] = {
    "reload": "offload",
    "orderings": "offload",
    "state": "offload",
    "errors": "offload",
    "timing": "offload",
    "move": "move",
}
HYBRID = Pool("hybrid", object, kind="hybrid")


def offers_of_pools() -> list[frozenset[str]]:
    """What each kind of pool offers, lacking nothing or one thing, with companions and without."""
    lacking = [[], *([capability] for capability in CAPABILITIES)]
    made = [Pool("p", object, kind=kind, lacks=lacks) for kind in KINDS for lacks in lacking]
    return [
        pool.offers | more | device
        for pool in made
        for more in (set(), {"companions"})
        for device in (set(), {"simulated"})
    ]


def offers_of_allocators() -> list[frozenset[str]]:
    """What each kind of allocator offers, lacking nothing or one thing."""
    lacking: list[Any] = [[], *([capability] for capability in ALLOCATOR_CAPABILITIES)]
    return [
        Allocator("a", object, HYBRID, kind=kind, lacks=lacks).offers
        for kind in ALLOCATOR_KINDS
        for lacks in lacking
    ]


def offers_of_host_tiers() -> list[frozenset[str]]:
    """What a host tier offers, lacking nothing or one thing, with companions and without."""
    lacking: list[Any] = [[], *([capability] for capability in HOST_TIER_CAPABILITIES)]
    return [
        HostTier("t", object, HYBRID, lacks=lacks).offers | more | device
        for lacks in lacking
        for more in (set(), {"companions"})
        for device in (set(), {"simulated"})
    ]


def offers_of_everything() -> list[frozenset[str]]:
    return [*offers_of_pools(), *offers_of_allocators(), *offers_of_host_tiers()]


def offers_to(clause: Clause) -> list[frozenset[str]]:
    if clause.subject == "host tiers":
        return offers_of_host_tiers()
    return offers_of_allocators() if clause.subject == "allocators" else offers_of_pools()


def test_no_two_clauses_share_a_name() -> None:
    parts = (pools, timing, allocators, host_tiers, signatures)
    every = [clause for part in parts for clause in part.CLAUSES]
    assert [clause.id for clause in every] == list(CLAUSES)
    assert len(every) == len(CLAUSES)


def test_no_two_clauses_say_the_same() -> None:
    assert len({clause.sentence for clause in CLAUSES.values()}) == len(CLAUSES)


def test_each_part_of_the_contract_has_its_own_subjects() -> None:
    assert {clause.subject for clause in allocators.CLAUSES} == {"allocators"}
    assert {clause.subject for clause in signatures.CLAUSES} == {"signatures"}
    assert {clause.subject for clause in timing.CLAUSES} == {"timing"}
    assert {clause.subject for clause in host_tiers.CLAUSES} == {"host tiers"}
    others = set(get_args(Subject)) - {"allocators", "host tiers", "signatures", "timing"}
    assert {clause.subject for clause in pools.CLAUSES} == others


@each_clause
def test_clause_is_a_name_a_sentence_and_a_source(clause: Clause) -> None:
    assert clause.id.isidentifier()
    assert clause.id == clause.id.lower()
    assert clause.sentence[0].isupper()
    assert clause.sentence.endswith(".")
    assert clause.sentence.count("\n") == 0
    assert clause.source.strip()


@each_clause
def test_clause_binds_from_a_version_that_exists(clause: Clause) -> None:
    assert 1 <= clause.since <= VERSION
    assert clause.level in LEVELS


# -- what clauses need --------------------------------------------------------------------


@each_clause
def test_clauses_on_a_verb_need_the_verb(clause: Clause) -> None:
    if clause.subject in VERB_OF:
        assert VERB_OF[clause.subject] in clause.needs
    else:
        assert not clause.needs & {"move", "copy_state", "zero_state"}
    assert clause.needs <= set(get_args(Need))


@each_clause
def test_clause_applies_to_something_that_can_be_declared(clause: Clause) -> None:
    if clause.subject == "signatures":
        assert clause.needs <= {"source"}
    else:
        assert any(clause.needs <= offers for offers in offers_to(clause))


@each_clause
def test_clause_that_needs_something_does_not_apply_to_everything(clause: Clause) -> None:
    applies_to_all = clause.subject != "signatures" and all(
        clause.needs <= offers for offers in offers_to(clause)
    )
    assert applies_to_all is (not clause.needs and clause.subject != "signatures")


def test_need_of_source_is_for_families_alone() -> None:
    assert {c.subject for c in CLAUSES.values() if "source" in c.needs} == {"signatures"}


@pytest.mark.parametrize("need", [need for need in get_args(Need) if need != "source"])
def test_what_can_be_needed_is_needed_and_offered(need: str) -> None:
    assert any(need in clause.needs for clause in CLAUSES.values())
    assert any(need in offers for offers in offers_of_everything())


def test_nothing_is_offered_that_no_clause_can_need() -> None:
    offered = frozenset().union(*offers_of_everything())
    assert offered <= set(get_args(Need))


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_clauses_on_what_a_pool_lacks_are_off(capability: Any) -> None:
    pool = Pool("p", object, kind="hybrid", lacks=[capability])
    assert capability not in pool.offers
    assert CLAUSES["lacks_is_refused_first"].needs <= pool.offers


@pytest.mark.parametrize("capability", ALLOCATOR_CAPABILITIES)
@pytest.mark.parametrize("kind", ALLOCATOR_KINDS)
def test_clauses_on_what_an_allocator_lacks_are_off(kind: Any, capability: str) -> None:
    allocator = Allocator("a", object, HYBRID, kind=kind, lacks=[capability])
    assert capability not in allocator.offers
    assert CLAUSES["lacking_verbs_are_refused"].needs <= allocator.offers


def test_pool_without_state_is_asked_to_refuse_it_unless_it_lacks_state() -> None:
    asked = CLAUSES["state_is_refused_not_dropped"].needs
    assert asked <= Pool("p", object, kind="token").offers
    assert not asked <= Pool("p", object, kind="token", lacks=["state"]).offers
    assert not asked <= HYBRID.offers


# -- by name ----------------------------------------------------------------------------------


@each_clause
def test_clause_is_found_by_its_name(clause: Clause) -> None:
    assert find_clause(clause.id) is clause


def test_contract_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        CLAUSES["mine"] = CLAUSES["state_travels"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("word", "known", "told"),
    [
        ("pag", ["page", "token"], "; did you mean 'page'?"),
        ("zzz", ["token", "page"], "; it must be one of page, token"),
        ("", ["page"], "; it must be one of page"),
    ],
)
def test_nearest_word_or_all_of_them(word: str, known: list[str], told: str) -> None:
    assert did_you_mean(word, known) == told
