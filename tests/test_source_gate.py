"""A family that is read from source, as the checks of a downstream session."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from conformance import Family
from reference_pools import KVPool

NPU = """
import torch_npu
from reference_pools import TokenPool

class NPUPool(TokenPool):
    def get_cpu_copy(self, indices):
        return torch_npu.copy(self, indices)
"""
REPAIRED = NPU.replace("self, indices)", "self, indices, mamba_indices=None)", 1)
RENAMED = (
    REPAIRED
    + """
    def load_cpu_copy(self, host, indices, mamba_indices=None): ...
"""
)
SCHEDULER = """
def retract(pool, indices, state):
    return pool.get_cpu_copy(indices, mamba_indices=state)
"""
EXEMPT = "exempt={'npu_engine.pools.NPUPool': 'needs an NPU'}"

Session = Callable[..., pytest.RunResult]


@pytest.fixture
def session(
    pytester: pytest.Pytester, downstream: Session, request: pytest.FixtureRequest
) -> Session:
    """Runs the checks on the family in the package `npu_engine` with these pools."""

    def run(pools: str, arguments: str = EXEMPT, *options: str) -> pytest.RunResult:
        package = pytester.mkpydir("npu_engine")
        (package / "pools.py").write_text(pools, encoding="utf-8")
        (package / "scheduler.py").write_text(SCHEDULER, encoding="utf-8")
        family = f"Family(KVPool, packages=['npu_engine'], source=True, {arguments})"
        return downstream(f"[{family}]", "-k", "test_kv", *options)

    return run


def failed(result: pytest.RunResult) -> set[str]:
    """The ids of the checks that failed."""
    lines = [line.split() for line in result.outlines if line.startswith("FAILED ")]
    return {words[1].partition("::")[2] for words in lines}


def test_drift_in_a_class_that_cannot_be_imported_fails(session: Session) -> None:
    result = session(NPU)
    assert failed(result) == {"test_override_accepts_every_keyword[NPUPool]"}
    result.stdout.fnmatch_lines(
        [
            "*class     npu_engine.pools.NPUPool",
            "*get_cpu_copy(indices) does not accept mamba_indices=, which KVPool does",
            "*at        npu_engine/pools.py:6",
            "*caller    npu_engine/scheduler.py:3",
        ]
    )


def test_nothing_of_the_engine_is_imported(session: Session) -> None:
    assert session(REPAIRED).ret == 0
    assert not {name for name in sys.modules if name.startswith(("npu_engine", "torch_npu"))}


def test_one_item_is_selected_by_class_and_rule(session: Session) -> None:
    session(NPU, EXEMPT, "-k", "NPUPool and every_keyword").assert_outcomes(failed=1)


def test_class_without_a_pool_or_an_exemption_fails(session: Session) -> None:
    assert failed(session(REPAIRED, "")) == {"test_every_subclass_is_covered[NPUPool]"}


@pytest.mark.parametrize(
    ("exempt", "name"),
    [
        ("npu_engine.pools.GonePool", "npu_engine.pools.GonePool"),
        ("npu_engine.gone", "npu_engine.gone"),
    ],
)
def test_exemption_of_nothing_fails(session: Session, exempt: str, name: str) -> None:
    arguments = f"exempt={{'npu_engine.pools': 'NPU', {exempt!r}: 'gone'}}"
    assert failed(session(REPAIRED, arguments)) == {f"test_every_subclass_is_covered[{name}]"}


def test_module_may_be_exempt_as_a_whole(session: Session) -> None:
    assert failed(session(NPU, "exempt={'npu_engine.pools': 'NPU'}")) == set()


def test_file_that_cannot_be_read_fails(session: Session) -> None:
    broken = NPU + "    def load_cpu_copy(self,"
    assert failed(session(broken, "")) == {"test_every_subclass_is_covered[npu_engine.pools]"}


@pytest.mark.parametrize(("level", "fails"), [("required", False), ("strict", True)])
def test_warnings_fail_at_level_strict(session: Session, level: str, fails: bool) -> None:
    found = failed(session(RENAMED, f"{EXEMPT}, level={level!r}"))
    assert found == ({"test_override_keeps_names[NPUPool]"} if fails else set())


def test_known_drift_is_expected(session: Session) -> None:
    known = "known={'NPUPool': {'override_accepts_every_keyword': Known('no state on NPUs')}}"
    result = session(NPU, f"{EXEMPT}, {known}")
    assert result.parseoutcomes()["xfailed"] == 1
    assert result.ret == 0


def test_covered_class_passes(session: Session) -> None:
    pools = (
        NPU.replace("import torch_npu\n", "")
        + """
    def get_cpu_copy(self, indices, mamba_indices=None):
        return super().get_cpu_copy(indices, mamba_indices=mamba_indices)
"""
    )
    assert failed(session(pools, "exempt={'npu_engine.pools.NPUPool': 'x'}")) == set()


def test_package_that_is_not_there_is_a_usage_error(downstream: Session) -> None:
    result = downstream("[Family(KVPool, packages=['no_such_engine'], source=True)]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    output = "\n".join([*result.outlines, *result.errlines])
    assert "Family KVPool: no_such_engine: neither" in output or "no_such_engine: no such" in output


def test_source_needs_packages() -> None:
    with pytest.raises(ValueError, match="source=True needs the packages that are to be read"):
        Family(KVPool, source=True)


def test_call_of_the_root_that_binds_on_nothing_fails(session: Session) -> None:
    call = "\ndef f(pool: KVPool, i):\n    pool.get_cpu_copy(i, wrong=1)\n"
    pools = REPAIRED + "from reference_pools import KVPool\n" + call
    assert failed(session(pools)) == {"test_every_call_binds[KVPool]"}


def test_classes_of_one_name_are_told_apart(session: Session) -> None:
    again = REPAIRED.replace("class NPUPool", "class Other:\n    class NPUPool").replace(
        "    def", "        def"
    )
    pools = REPAIRED + again.replace("        return", "            return")
    found = failed(session(pools, ""))
    names = ["npu_engine.pools.NPUPool", "npu_engine.pools.Other.NPUPool"]
    assert found == {f"test_every_subclass_is_covered[{name}]" for name in names}
