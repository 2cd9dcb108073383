"""For every clause, a broken pool, allocator or class that fails it, and the message a user reads.

The messages are pinned in `tests/messages`. After a change that is meant to alter them:

    KV_WRITE_MESSAGES=1 pytest tests/test_clauses_fail.py

then read the difference as a user would.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import drifted
import pytest
from broken_allocators import ALLOCATORS
from broken_pools import CLASSES, POOLS, family
from broken_tiers import HOST_TIERS
from broken_timing import TIMING
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import Allocator, Family, HostTier, Pool
from conformance import suite as checks
from conformance.case import Case
from conformance.contract import CLAUSES
from conformance.declared import violations_in
from conformance.signatures.family import ClassCase, class_cases
from conformance.signatures.live import member_of
from conformance.signatures.rules import RULES
from conformance.suite.checks import quiet, without_shrinking
from conformance.timing import prepare
from conformance.violation import Violation
from reference_pools import KVPool
from reference_pools.broken import faults

MESSAGES = Path(__file__).parent / "messages"
SHORTEST = sorted(faults(), key=lambda fault: len(fault.program))
FAULTS = {fault.clause: fault.declared() for fault in reversed(SHORTEST)}
PINNED = quiet(settings(derandomize=True, database=None))


def broken(clause: str) -> Pool | Allocator | HostTier:
    """What fails this clause and no other, made up or out of the catalogue."""
    for made_up in (POOLS, ALLOCATORS, TIMING, HOST_TIERS):
        if clause in made_up:
            return made_up[clause]
    return FAULTS[clause]


def case_of(entry: Pool | Allocator | HostTier, clause: str) -> Case:
    pool, front = (entry, None) if isinstance(entry, Pool) else (entry.pool, entry)
    device = "cpu"
    if "simulated" in CLAUSES[clause].needs:
        prepare()
        device = "sim"
    return Case(pool, CLAUSES[clause], device, entry.level or "strict", 1, front=front)


def program_message(clause: str) -> str:
    """What the clause's own check says of its broken pool or allocator, shrunk, for that
    clause alone."""
    case = case_of(broken(clause), clause)
    check = getattr(checks, f"test_{clause}")
    if hasattr(check, "hypothesis"):
        body = check.hypothesis.inner_test
        as_there = PINNED if CLAUSES[clause].subject != "host tiers" else without_shrinking(PINNED)
        check = as_there(given(data=st.data())(lambda data: body(case, data)))
    else:
        check = partial(check, case)
    with pytest.raises((Violation, BaseExceptionGroup)) as caught:
        check()
    told = {violation.clause: str(violation) for violation in violations_in(caught.value)}
    assert set(told) == {clause}
    return told[clause]


def class_message(clause: str) -> str:
    cls = CLASSES[clause]
    root = KVPool if issubclass(cls, KVPool) else family().root
    return message_of(ClassCase(family(root), CLAUSES[clause], cls.__name__, cls))


def source_message(clause: str) -> str:
    return message_of(*broken_in_source(clause)[clause])


def message_of(case: ClassCase) -> str:
    with pytest.raises(Violation) as caught:
        case.check()
    assert caught.value.clause == case.clause.id
    return str(caught.value)


def broken_in_source(clause: str) -> dict[str, list[ClassCase]]:
    """The cases that fail in the module that is named after a clause."""
    declared = Family(drifted.Root, packages=[f"drifted.{clause}"], source=True)
    failing: dict[str, list[ClassCase]] = {}
    for rule in CLAUSES.values():
        if rule.subject == "signatures" and rule.id != "every_subclass_is_covered":
            for case in class_cases(declared, rule, (), "strict"):
                if case.found:
                    failing.setdefault(rule.id, []).append(case)
    return failing


@pytest.mark.parametrize("clause", sorted(CLAUSES))
def test_message_of_broken_clause(clause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if clause in CLASSES:
        found = class_message(clause)
    elif "source" in CLAUSES[clause].needs:
        monkeypatch.chdir(MESSAGES.parent.parent)
        found = source_message(clause)
    else:
        found = program_message(clause)
    pinned = MESSAGES / f"{clause}.txt"
    if os.environ.get("KV_WRITE_MESSAGES"):
        pinned.write_text(found + "\n", encoding="utf-8")
    assert found + "\n" == pinned.read_text(encoding="utf-8")


def test_every_message_belongs_to_a_clause() -> None:
    assert {path.stem for path in MESSAGES.glob("*.txt")} == set(CLAUSES)


@pytest.mark.parametrize("clause", sorted(CLASSES))
def test_broken_class_breaks_one_rule(clause: str) -> None:
    cls = CLASSES[clause]
    root = KVPool if issubclass(cls, KVPool) else family().root
    assert set(broken_rules(root, cls)) <= {clause}


@pytest.mark.parametrize("clause", [c.id for c in CLAUSES.values() if "source" in c.needs])
def test_drifted_module_breaks_one_clause(clause: str) -> None:
    (cases,) = broken_in_source(clause).values()
    assert [case.clause.id for case in cases] == [clause]


def broken_rules(root: type, cls: type) -> Iterator[str]:
    verbs = ("get_cpu_copy", "load_cpu_copy")
    members = member_of(root, root, verbs), member_of(cls, root, verbs)
    for clause, rule in RULES.items():
        if list(rule(*members, verbs)):
            yield clause


def test_catalogue_modules_are_short() -> None:
    for fault in faults():
        source = Path(importlib.import_module(fault.module).__file__ or "").read_text()
        classes = [block for block in source.split("\n\n\n") if block.startswith("class ")]
        assert classes or fault.tier
        assert all(len(block.splitlines()) <= 30 for block in classes)
