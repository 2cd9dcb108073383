"""What a session makes of a declared host tier: its checks, its table, its known failures."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from conformance.contract import CLAUSES
from conformance.timing import prepare

WITNESS = "write r0 at 5..9; back up r0; load r0 at 10..14"
CLASSES = """
from conformance import Allocator, HostTier
from reference_pools import host
from reference_pools.allocators import PagedAllocator
from reference_pools.declarations import make_dsa, make_host_tier, make_hybrid

class Forgets(host.HostTier):
    '''Takes what is on the device for what is on the host.'''
    def __init__(self, *parties, **options):
        super().__init__(*parties, **options)
        self.loads.way = "backup"

class TellsNoWidths(host.HostTier):
    row_bytes = None

def make(pool, cls):
    memory = host.HostPool(pool, pages=pool.size // pool.page_size - 1)
    return cls(pool, memory, memory.allocator())

make_forgetful_tier = partial(make, cls=Forgets)
"""
POOL = 'Pool("p", make_token, kind="token")'
TIER = f'HostTier("t", make_host_tier, {POOL}{{}})'
FORGETS = f'HostTier("t", make_forgetful_tier, {POOL}{{}})'
SHORT = "write r0 at 5..9; back up r0; await backup of r0; load r0 at 10..14"
FILE = "--kv-report=out.json"
RESTORES = "host_tier_restores_every_row"


@pytest.fixture(autouse=True, scope="module")
def device() -> None:
    """There before any session, since pytester forgets the modules that one brings."""
    prepare()


@pytest.fixture
def session(downstream: Any) -> Any:
    """`downstream`, with the declarations as arguments."""

    def run(*entries: str, options: tuple[str, ...] = (), **more: Any) -> pytest.RunResult:
        return downstream(f"[{', '.join(entries)}]", *options, classes=CLASSES, **more)

    return run


def outcomes(pytester: pytest.Pytester) -> list[dict[str, Any]]:
    return json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))["outcomes"]


def collected(result: pytest.RunResult) -> set[str]:
    """The clauses whose checks of `t` were collected."""
    assert result.ret == 0
    return set(re.findall(r"::test_(\w+)\[t\]", result.stdout.str()))


def clauses_of_tiers(level: str, *offers: str) -> set[str]:
    levels = {"required", level}
    return {
        clause.id
        for clause in CLAUSES.values()
        if clause.subject == "host tiers" and clause.level in levels and clause.needs <= {*offers}
    }


def test_check_of_a_host_tier_has_its_name_as_id(session: Any) -> None:
    result = session(TIER.format(""), options=("--collect-only", "-k", RESTORES))
    result.stdout.fnmatch_lines([f"*::test_{RESTORES}[[]t[]]"])


@pytest.mark.parametrize(
    ("pool", "more", "level", "offers"),
    [
        (POOL, "", "required", ["layers", "row_bytes"]),
        (POOL, ', level="strict"', "strict", ["layers", "row_bytes"]),
        (POOL, ', lacks=["row_bytes", "layers"]', "required", ["lacks"]),
        ('Pool("p", make_dsa, kind="dsa")', "", "required", ["layers", "row_bytes", "companions"]),
        ('Pool("p", make_hybrid, kind="hybrid")', "", "required", ["layers", "row_bytes", "state"]),
    ],
)
def test_checks_of_a_host_tier_are_those_of_what_it_offers(
    session: Any, pool: str, more: str, level: str, offers: list[str]
) -> None:
    result = session(f'HostTier("t", make_host_tier, {pool}{more})', options=("--collect-only",))
    assert collected(result) == clauses_of_tiers(level, *offers)


def test_clauses_on_timing_need_the_simulated_device(session: Any) -> None:
    result = session(TIER.format(""), options=("--collect-only", "--kv-device=sim"))
    assert collected(result) == clauses_of_tiers("required", "layers", "row_bytes", "simulated")


def test_undefined_clause_makes_no_check(session: Any) -> None:
    more = ', level="strict", undefined={"double_drop_is_refused": "nobody does"}'
    result = session(TIER.format(more), options=("--collect-only",))
    every = clauses_of_tiers("strict", "layers", "row_bytes")
    assert every - collected(result) == {"double_drop_is_refused"}


def test_host_tiers_have_a_table_of_their_own(session: Any, pytester: pytest.Pytester) -> None:
    result = session(POOL, TIER.format(""), options=("-k", "every_row or every_tensor", FILE))
    result.assert_outcomes(passed=2)
    result.stdout.re_match_lines(
        [
            r"pool +clauses +programs +reloads +rows moved +known +lacks +failed$",
            r"p +1/1 ",
            r"host tier +clauses +programs +loads +rows moved +known +lacks +failed$",
            r"t +1/1 +5 +\d+ +\d+ +- +- +-$",
        ]
    )
    (found,) = (outcome for outcome in outcomes(pytester) if outcome["subject"] == "host tier")
    assert (found["name"], found["member"], found["clause"]) == ("t", "t", RESTORES)
    assert (found["status"], found["ids"]) == ("passed", 0)
    assert min(found["programs"], found["reloads"], found["rows"]) >= 5


def test_failing_host_tier_is_told_as_one(session: Any, pytester: pytest.Pytester) -> None:
    result = session(FORGETS.format(""), options=("-k", RESTORES, FILE))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"t breaks {RESTORES} (seen by 1 check)"])
    (found,) = outcomes(pytester)
    assert (found["subject"], found["status"]) == ("host tier", "failed")
    assert found["accused"] == [RESTORES]
    (shown,) = found["findings"]
    assert shown["replay"].endswith(f" | {SHORT}")
    assert re.search(r"^E? +host tier t$", result.stdout.str(), re.MULTILINE)


def test_what_a_host_tier_lacks_is_in_its_row(session: Any) -> None:
    made = "partial(make, cls=TellsNoWidths)"
    declared = f'HostTier("t", {made}, {POOL}, lacks=["row_bytes"])'
    result = session(declared, options=("-k", "lacking_host or conserved"))
    result.assert_outcomes(passed=2)
    result.stdout.re_match_lines([r"t +2/2 +\d+ +\d+ +\d+ +- +row_bytes +-$"])


@pytest.mark.parametrize(
    "other",
    [
        'Pool("t", make_token, kind="token")',
        f'Allocator("t", PagedAllocator, {POOL})',
        f'HostTier("t", make_forgetful_tier, {POOL})',
    ],
    ids=["pool", "allocator", "host tier"],
)
def test_name_of_a_host_tier_is_its_own(session: Any, other: str) -> None:
    result = session(TIER.format(""), other)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = "pytest_kv_pools: two pools, allocators or host tiers are named 't'"
    assert told in result.stderr.str()


def test_host_tier_that_is_not_in_a_list_is_named(downstream: Any) -> None:
    result = downstream(TIER.format(""), classes=CLASSES)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "pytest_kv_pools must return a list, got HostTier(name='t'" in result.stderr.str()


def test_host_tier_without_checks_fails_the_run(session: Any) -> None:
    body = "from conformance.suite.test_declarations import *"
    result = session(POOL, TIER.format(""), body=body)
    assert result.ret != 0
    told = "\n".join((*result.outlines, *result.errlines))
    assert "HostTier 't' has no check: the suite was collected without those" in told


# -- known failures and replays ------------------------------------------------------------


def known(clause: str, witness: str) -> str:
    return f', known={{"{clause}": Known("one page", "{witness}", "https://x.org/1")}}'


def test_known_failure_is_expected_and_tolerated_elsewhere(
    session: Any, pytester: pytest.Pytester
) -> None:
    declared = FORGETS.format(known(RESTORES, SHORT))
    result = session(declared, options=("-k", f"{RESTORES} or leaves_other", FILE))
    result.assert_outcomes(passed=1, xfailed=1)
    result.stdout.re_match_lines([r"t +1/2 +\d+ +\d+ +\d+ +1 +- +-$"])
    met, expected = sorted(outcomes(pytester), key=lambda found: found["clause"])
    assert (met["status"], expected["status"]) == ("passed", "known")
    assert met["known_hits"] > 0
    assert expected["message"].startswith("known: one page (https://x.org/1); if it passes now")


@pytest.mark.parametrize("entry", [TIER])
def test_known_failure_whose_witness_passes_fails_the_run(session: Any, entry: str) -> None:
    result = session(entry.format(known(RESTORES, WITNESS)), options=("-k", RESTORES))
    result.assert_outcomes(failed=1)
    assert "delete this entry of `known`" in result.stdout.str()


def test_witness_of_another_clause_fails_the_run(session: Any) -> None:
    declared = FORGETS.format(known("host_rows_are_conserved", SHORT))
    result = session(declared, options=("-k", "host_rows_are_conserved"))
    result.assert_outcomes(failed=1)
    assert f"{RESTORES}: What was backed up is loaded" in result.stdout.str()


def test_program_of_a_host_tier_is_replayed(session: Any, pytester: pytest.Pytester) -> None:
    options = ("-k", f"{RESTORES} or verbs_work", FILE, "--kv-replay", SHORT)
    failing = session(FORGETS.format(""), options=options)
    failing.assert_outcomes(failed=2)
    assert "token row 10 of k, layer 1: holds bytes of nobody" in failing.stdout.str()
    session(TIER.format(""), options=options).assert_outcomes(passed=2)
    did = [(o["programs"], o["reloads"], o["rows"]) for o in outcomes(pytester)]
    assert did == [(1, 1, 5), (1, 1, 5)]


def test_replay_that_a_failure_prints_shows_it_again(session: Any) -> None:
    first = session(FORGETS.format(""), options=("-k", RESTORES)).stdout.str()
    replay = re.search(r"--kv-replay '(.*)'", first)
    assert replay is not None
    options = ("-k", RESTORES, "--kv-replay", replay[1])
    again = session(FORGETS.format(""), options=options).stdout.str()
    assert re.findall(r"found +.*", again) == re.findall(r"found +.*", first) != []


def test_replay_of_a_known_failure_fails(session: Any) -> None:
    declared = FORGETS.format(known(RESTORES, SHORT))
    session(declared, options=("-k", RESTORES, "--kv-replay", SHORT)).assert_outcomes(failed=1)


# -- isolation -----------------------------------------------------------------------------


def test_isolated_host_tier_passes_and_fails_on_the_cpu(session: Any) -> None:
    options = ("-k", f"{RESTORES} or conserved")
    session(TIER.format(", isolated=True"), options=options).assert_outcomes(passed=2)
    result = session(FORGETS.format(", isolated=True"), options=options)
    result.assert_outcomes(failed=2)
    assert f"t breaks {RESTORES} (seen by 2 checks)" in result.outlines


@pytest.mark.parametrize("device", ["meta", "sim"])
def test_isolation_of_a_host_tier_is_for_the_cpu(session: Any, device: str) -> None:
    result = session(TIER.format(", isolated=True"), options=(f"--kv-device={device}",))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"HostTier 't' is isolated, and --kv-device={device}: a fork" in result.stderr.str()


# -- families ------------------------------------------------------------------------------


def test_pool_of_a_host_tier_alone_covers_no_class(session: Any) -> None:
    family = 'Family(KVPool, packages=["reference_pools.token"])'
    options = ("-k", "is_covered[TokenPool]")
    alone = session(TIER.format(""), family, options=options)
    alone.assert_outcomes(failed=1)
    session(TIER.format(""), POOL, family, options=options).assert_outcomes(passed=1)
