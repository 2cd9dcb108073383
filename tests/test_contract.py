"""The clauses are well formed, and are found by name."""

from __future__ import annotations

import pytest

from conformance import contract
from conformance.contract import CLAUSES, LEVELS, VERSION, Clause, did_you_mean, find_clause

each_clause = pytest.mark.parametrize("clause", CLAUSES.values(), ids=list(CLAUSES))


def test_no_two_clauses_share_a_name() -> None:
    assert list(CLAUSES) == [clause.id for clause in contract._ALL]


def test_no_two_clauses_say_the_same() -> None:
    assert len({clause.sentence for clause in CLAUSES.values()}) == len(CLAUSES)


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


@each_clause
def test_clauses_of_the_verbs_need_the_verbs(clause: Clause) -> None:
    on_verbs = clause.subject in ("reload", "state", "errors")
    assert ("offload" in clause.needs) == on_verbs
    assert not (clause.subject == "signatures" and clause.needs)


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
