"""Every fault of the catalogue, met as a downstream would meet it: through the plugin."""

from __future__ import annotations

import json

import pytest
from broken_allocators import ALLOCATORS
from broken_pools import POOLS

from conformance import Allocator, HostTier, Pool
from conformance.simdevice import door  # noqa: F401  (or pytester forgets it after a session)
from reference_pools.broken import Fault, faults

CONFTEST = """
from broken_allocators import ALLOCATORS
from broken_pools import POOLS
from conformance import Family
from conformance.signatures.imported import members
from hypothesis import Phase, settings
from reference_pools import KVPool
from reference_pools.broken import fault_of

settings.register_profile(
    "fast", max_examples={examples}, phases=[Phase.generate], database=None, derandomize=True
)
settings.load_profile("fast")

def with_family(fault):
    family = Family(KVPool, packages=[fault.module], level="strict")
    return [fault.declared(), *([family] if members(family).classes else [])]

def pytest_kv_pools():
    return {entries}
"""


CHECKS = {
    Pool: "test_every_verb_works",
    Allocator: "test_ids_are_conserved",
    HostTier: "test_host_tier_verbs_work",
}

pytestmark = pytest.mark.usefixtures("fresh_suite")


def run(pytester: pytest.Pytester, entries: str, *options: str, examples: int = 40) -> list[dict]:
    """The outcomes of the whole suite over these entries."""
    pytester.makeconftest(CONFTEST.format(entries=entries, examples=examples))
    pytester.makepyfile("from conformance.suite import *")
    pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "-q", "--tb=no", "--kv-report=out.json", *options
    )
    return json.loads((pytester.path / "out.json").read_text())["outcomes"]


def options_of(fault: Fault) -> list[str]:
    return [] if fault.device == "cpu" else [f"--kv-device={fault.device}"]


def entries_of(fault: Fault) -> str:
    """The broken pool or allocator, and the family of its class."""
    return f"with_family(fault_of({fault.module!r}))"


def assert_accused_of_one(outcomes: list[dict], clause: str) -> None:
    failed = [outcome for outcome in outcomes if outcome["status"] == "failed"]
    assert {accused for outcome in failed for accused in outcome["accused"]} == {clause}
    assert all(outcome["accused"] for outcome in failed)
    assert clause in {outcome["clause"] for outcome in failed}


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_fault_is_caught_by_exactly_its_clause(pytester: pytest.Pytester, fault: Fault) -> None:
    examples = 100 if fault.allocator else 40 if fault.device == "cpu" else 15
    outcomes = run(pytester, entries_of(fault), *options_of(fault), examples=examples)
    assert_accused_of_one(outcomes, fault.clause)


@pytest.mark.parametrize("clause", [*POOLS, *ALLOCATORS])
def test_made_up_fault_is_caught_by_exactly_its_clause(
    pytester: pytest.Pytester, clause: str
) -> None:
    made_up = "POOLS" if clause in POOLS else "ALLOCATORS"
    examples = 100 if clause in ALLOCATORS else 40
    assert_accused_of_one(run(pytester, f"[{made_up}[{clause!r}]]", examples=examples), clause)


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_program_of_the_catalogue_shows_the_fault(pytester: pytest.Pytester, fault: Fault) -> None:
    """And it cannot be made shorter by leaving out a step."""
    check = CHECKS[type(fault.declared())]
    options = ("-k", check, "--kv-replay", fault.program, *options_of(fault))
    outcomes = run(pytester, entries_of(fault), *options)
    assert [outcome["accused"] for outcome in outcomes] == [[fault.clause]]
    shown = outcomes[0]["message"].rpartition("|")[2].strip().rstrip("'")
    assert shown == fault.program.rpartition("|")[2].strip()


def test_catalogue_has_the_faults_it_must_have() -> None:
    reports = {report for fault in faults() for report in fault.reports}
    assert len(faults()) >= 55
    assert reports >= {
        f"sglang#{number}" for number in (25828, 23346, 22493, 35888, 7819, 33385, 36591)
    }


def test_catalogue_has_faults_in_the_order_of_calls() -> None:
    classes = {
        "ordering",
        "allocator-leak",
        "double-free",
        "stale-state",
        "aliasing",
        "index-space-mismatch",
        "relocation",
    }
    found = [fault for fault in faults() if fault.fault_class in classes]
    assert {fault.fault_class for fault in found} == classes
    assert len({report for fault in found for report in fault.reports}) >= 30
