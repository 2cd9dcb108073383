"""Every fault of the catalogue, met as a downstream would meet it: through the plugin."""

from __future__ import annotations

import json

import pytest

from reference_pools.broken import Fault, faults

CONFTEST = """
from conformance import Family
from conformance.signatures.family import members
from hypothesis import Phase, settings
from reference_pools import KVPool
from reference_pools.broken import fault_of

settings.register_profile(
    "fast", max_examples=40, phases=[Phase.generate], database=None, derandomize=True
)
settings.load_profile("fast")

def pytest_kv_pools():
    fault = fault_of({module!r})
    family = Family(KVPool, packages=[fault.module], level="strict")
    return [fault.declared(), *([family] if members(family).classes else [])]
"""


pytestmark = pytest.mark.usefixtures("fresh_suite")


def run(pytester: pytest.Pytester, fault: Fault, *options: str) -> list[dict]:
    """The outcomes of the whole suite over one broken pool and its family."""
    pytester.makeconftest(CONFTEST.format(module=fault.module))
    pytester.makepyfile("from conformance.suite import *")
    pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "-q", "--tb=no", "--kv-report=out.json", *options
    )
    return json.loads((pytester.path / "out.json").read_text())["outcomes"]


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_fault_is_caught_by_exactly_its_clause(pytester: pytest.Pytester, fault: Fault) -> None:
    failed = [outcome for outcome in run(pytester, fault) if outcome["status"] == "failed"]
    assert {clause for outcome in failed for clause in outcome["accused"]} == {fault.clause}
    assert all(outcome["accused"] for outcome in failed)
    assert fault.clause in {outcome["clause"] for outcome in failed}


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_program_of_the_catalogue_shows_the_fault(pytester: pytest.Pytester, fault: Fault) -> None:
    outcomes = run(pytester, fault, "-k", "test_every_verb_works", "--kv-replay", fault.program)
    assert [outcome["accused"] for outcome in outcomes] == [[fault.clause]]
    assert fault.program.rpartition("|")[2].strip() in " ".join(
        outcomes[0]["message"].split("--kv-replay")[1].split()
    )


def test_catalogue_has_the_faults_it_must_have() -> None:
    reports = {report for fault in faults() for report in fault.reports}
    assert len(faults()) >= 15
    assert reports >= {
        f"sglang#{number}" for number in (25828, 23346, 22493, 35888, 7819, 33385, 36591)
    }
