"""What a run tells when it is over: the table, and the file."""

from __future__ import annotations

import dataclasses
import json
from importlib.metadata import version
from typing import Any

import pytest
import torch

from conformance.journal.records import Failure
from conformance.report import Outcome, Report

TOKEN = 'Pool("token", make_token, kind="token")'
NARROW = 'Pool("narrow", partial(make_mla, cls=NarrowHostRows), kind="mla"{})'
TRIP = "write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5"
KNOWN = (
    f', known={{"reload_restores_the_same_rows": Known("too few", "{TRIP}", "https://x.org/1")}}'
)
FAMILY = """Family(
    KVPool,
    packages=["reference_pools.token", "reference_pools.mla"],
    exempt={"reference_pools.mla.MLAPool": "tried elsewhere"},
)"""
FILE = "--kv-report=out.json"


def outcomes(pytester: pytest.Pytester) -> list[dict[str, Any]]:
    return json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))["outcomes"]


def outcome(**changes: Any) -> Outcome:
    return dataclasses.replace(
        Outcome(
            "pool",
            "a",
            "a",
            "empty_set_is_legal",
            "failed",
            ("x", "y"),
            1,
            2,
            3,
            4,
            5,
            (),
            {"negative_ids_are_refused": "as numpy's"},
            False,
            0.5,
            "",
        ),
        **changes,
    )


# -- the file ---------------------------------------------------------------------


def test_file_names_what_the_run_was_made_with(downstream: Any, pytester: pytest.Pytester) -> None:
    downstream(f"[{TOKEN}]", "-k", "test_every_tensor", FILE)
    report = json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))
    assert list(report) == ["schema", "environment", "outcomes"]
    assert report["schema"] == 1
    environment = report["environment"]
    assert (environment["contract"], environment["device"]) == ("1", "cpu")
    assert (environment["torch"], environment["pytest"]) == (
        version("torch"),
        pytest.__version__,
    )
    assert set(environment) == {
        "conformance", "contract", "device", "torch", "hypothesis", "pytest",
    }  # fmt: skip


def test_outcome_of_a_passing_check(downstream: Any, pytester: pytest.Pytester) -> None:
    downstream(f"[{TOKEN}]", "-k", "test_empty_set", FILE)
    (found,) = outcomes(pytester)
    assert set(found) == {field.name for field in dataclasses.fields(Outcome)}
    assert found["programs"] >= 5
    assert min(found["reloads"], found["rows"]) >= 5
    assert found.pop("seconds") > 0
    del found["programs"], found["reloads"], found["rows"]
    assert found == {
        "subject": "pool",
        "name": "token",
        "member": "token",
        "clause": "empty_set_is_legal",
        "status": "passed",
        "accused": [],
        "known_hits": 0,
        "ids": 0,
        "lacks": [],
        "undefined": {},
        "exempt": False,
        "message": "",
        "findings": [],
    }


def test_outcome_of_a_failing_check(downstream: Any, pytester: pytest.Pytester) -> None:
    downstream(f"[{NARROW.format('')}]", "-k", "empty_set", "--kv-replay", TRIP, FILE)
    (found,) = outcomes(pytester)
    assert (found["clause"], found["status"]) == ("empty_set_is_legal", "failed")
    assert found["accused"] == ["reload_restores_the_same_rows"]
    assert found["message"].startswith("reload_restores_the_same_rows: Reloading into the rows")
    (shown,) = found["findings"]
    assert shown["clause"] == "reload_restores_the_same_rows"
    assert shown["replay"].endswith(f" | {TRIP}")
    assert f"--kv-replay '{shown['replay']}'" in found["message"]
    assert shown["found"] in found["message"]
    assert not shown["crashed"]


def test_outcome_of_a_known_failure(downstream: Any, pytester: pytest.Pytester) -> None:
    options = ("-k", "the_same_rows or offload_changes", FILE)
    result = downstream(f"[{NARROW.format(KNOWN)}]", *options)
    met, known = sorted(outcomes(pytester), key=lambda found: found["clause"])
    assert (met["status"], known["status"]) == ("passed", "known")
    assert met["known_hits"] > 0
    assert known["accused"] == []
    assert known["message"].startswith("known: too few (https://x.org/1); if it passes now, delete")
    result.stdout.re_match_lines([r"narrow +1/2 +\d+ +\d+ +\d+ +1 +- +-$"])


def test_outcomes_of_a_family(downstream: Any, pytester: pytest.Pytester) -> None:
    result = downstream(f"[{TOKEN}, {FAMILY}]", "-k", "keeps_defaults or is_covered", FILE)
    found = outcomes(pytester)
    assert {o["clause"] for o in found} == {"every_subclass_is_covered"}
    assert {(o["name"], o["member"], o["exempt"]) for o in found} == {
        ("KVPool", "MLAPool", True),
        ("KVPool", "TokenPool", False),
    }
    result.stdout.re_match_lines([r"family +classes +checks", r"KVPool +2 +2/2 +1 +- +-$"])


def test_replay_runs_exactly_one_program(downstream: Any, pytester: pytest.Pytester) -> None:
    result = downstream(f"[{TOKEN}]", "-k", "empty_set", "--kv-replay", TRIP, FILE)
    assert result.ret == 0
    (found,) = outcomes(pytester)
    assert (found["programs"], found["reloads"], found["rows"]) == (1, 1, 1)


def test_replay_of_a_known_failure_fails(downstream: Any) -> None:
    result = downstream(f"[{NARROW.format(KNOWN)}]", "-k", "the_same_rows", "--kv-replay", TRIP)
    result.assert_outcomes(failed=1)


# -- the table --------------------------------------------------------------------

IDS = 'Allocator("ids", PagedAllocator, Pool("under", make_token, kind="token"){})'
ALLOCATORS = """
from conformance import Allocator
from reference_pools.allocators import PagedAllocator
"""


def test_allocators_have_a_table_of_their_own(downstream: Any, pytester: pytest.Pytester) -> None:
    result = downstream(f"[{IDS.format('')}]", "-k", "conserved", FILE, classes=ALLOCATORS)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines(
        [r"allocator +clauses +programs +reloads +ids handed out .*", r"ids +1/1 +5 +\d+ +\d+ .*"]
    )
    (found,) = outcomes(pytester)
    assert (found["subject"], found["rows"] > 0) == ("allocator", True)
    assert found["ids"] > 0


def test_what_is_undefined_is_told_with_its_reason(downstream: Any) -> None:
    more = ', level="strict", undefined={"double_free_is_refused": "the caller counts"}'
    result = downstream(f"[{IDS.format(more)}]", "-k", "free", classes=ALLOCATORS)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["ids: double_free_is_refused is undefined (the caller counts)"])


def test_pool_that_lacks_something_says_so(downstream: Any) -> None:
    refuses = """
class Refuses(TokenPool):
    def get_cpu_copy(self, indices, mamba_indices=None):
        raise NotImplementedError
    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
        raise NotImplementedError
"""
    pool = 'Pool("p", partial(make_token, cls=Refuses), kind="token", lacks=["offload"])'
    result = downstream(f"[{pool}]", classes=refuses)
    result.assert_outcomes(passed=5)
    result.stdout.re_match_lines([r"p +5/5 +\d+ +0 +0 +- +offload +-$"])


def test_one_fault_seen_by_many_checks_is_told_once(downstream: Any) -> None:
    result = downstream(f"[{NARROW.format('')}]", "-k", "can_be_repeated or independent or its_own")
    lines = [line for line in result.outlines if line.startswith("narrow breaks")]
    assert lines == ["narrow breaks reload_restores_the_same_rows (seen by 3 checks)"]


def test_run_without_checks_says_nothing(downstream: Any, pytester: pytest.Pytester) -> None:
    result = downstream(f"[{TOKEN}]", FILE, body="def test_of_their_own(): pass")
    result.assert_outcomes(passed=1)
    assert "kv conformance" not in result.stdout.str()
    assert outcomes(pytester) == []


def test_outcomes_of_workers_reach_the_file(pytester: pytest.Pytester, downstream: Any) -> None:
    checks = ("-k", "accounted or is_covered", FILE)
    downstream(f"[{TOKEN}, {FAMILY}]", *checks)
    alone = sorted((o["member"], o["clause"], o["status"]) for o in outcomes(pytester))
    (pytester.path / "out.json").unlink()
    pytester.runpytest_subprocess("-q", "-n", "1", *checks)
    found = sorted((o["member"], o["clause"], o["status"]) for o in outcomes(pytester))
    assert found == alone
    assert len(alone) == 3


# -- outcomes as data ---------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lacks": ("offload",)},
        {"accused": ()},
        {"message": 'two\nlines "quoted"'},
        {"findings": (Failure("x", "overwrite", "bytes of nobody"), Failure("y", "", "", True))},
    ],
)
def test_outcome_as_text_and_back(changes: dict[str, Any]) -> None:
    assert Outcome.from_json(outcome(**changes).to_json()) == outcome(**changes)


def test_outcomes_are_grouped_by_name_in_order() -> None:
    b, a1, a2 = outcome(name="b"), outcome(clause="x"), outcome(clause="y")
    family = outcome(subject="family", name="a")
    report = Report([b, a1, family, a2])
    assert report.of("pool") == {"a": [a1, a2], "b": [b]}
    assert list(report.of("pool")) == ["a", "b"]
    assert report.of("family") == {"a": [family]}


# -- options ------------------------------------------------------------------------


def test_cuda_where_there_is_none(downstream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = downstream(f"[{TOKEN}]", "--kv-device=cuda:1", "-k", "accounted")
    assert result.ret != 0
    assert "--kv-device=cuda:1: torch sees no CUDA device" in result.stderr.str()


@pytest.mark.parametrize("version", ["0", "2", "-1", "one", "1.0", ""])
def test_contract_that_does_not_exist(downstream: Any, version: str) -> None:
    result = downstream(f"[{TOKEN}]", "-o", f"kv_contract={version}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"kv_contract is {version!r}, expected a number from 1 to 1" in result.stderr.str()


def test_pools_of_every_hook_are_used(downstream: Any, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        more="""
        from conformance import Pool
        from reference_pools.declarations import make_mla

        def pytest_kv_pools():
            return [Pool("more", make_mla, kind="mla")]
        """
    )
    pytester.syspathinsert()
    result = downstream(f"[{TOKEN}]", "-p", "more", "-k", "accounted")
    result.stdout.re_match_lines([r"more +1/1", r"token +1/1"])
