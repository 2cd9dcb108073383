"""The pytest plugin: options, parametrization, and what a run reports.

It is loaded in every pytest session of an environment, so it imports neither torch nor
hypothesis; what needs them is imported once a check of the suite is collected.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from conformance import contract, declared
from conformance.report import Outcome
from conformance.report.reporter import Reporter

ARGUMENTS = ("kv_case", "kv_class")
"""The arguments by which a check of the suite is known."""
PROBLEM = pytest.StashKey[pytest.UsageError]()


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from conformance import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kv", "KV-cache pool conformance")
    group.addoption(
        "--kv-device", default="cpu", metavar="DEVICE", help="device to build pools on (cpu, cuda)"
    )
    group.addoption(
        "--kv-report", metavar="FILE.json", help="write what was checked and found to this file"
    )
    group.addoption(
        "--kv-replay",
        metavar="TEXT",
        help="run this one program, as printed by a failure, in each selected check",
    )
    parser.addini(
        "kv_level", default="required", help="level of pools that name none: required or strict"
    )
    parser.addini("kv_contract", default="1", help="version of the contract that pools are held to")


def pytest_configure(config: pytest.Config) -> None:
    declared.check_options(config)
    config.pluginmanager.register(Reporter(config), "kv-reporter")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for argument in ARGUMENTS:
        if argument in metafunc.fixturenames:
            clause = contract.find_clause(metafunc.function.__name__.removeprefix("test_"))
            try:
                params = declared.params_of(metafunc.config, clause)
            except pytest.UsageError as error:
                # Raised here it would come with a traceback of pytest's; see below.
                metafunc.config.stash[PROBLEM], params = error, []
            metafunc.parametrize(argument, params or [pytest.param(None, id="nothing")])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if PROBLEM not in config.stash and any(case_of(item) is not None for item in items):
        try:
            declared.require_checks(config)
        except pytest.UsageError as error:
            config.stash[PROBLEM] = error
    if PROBLEM not in config.stash:
        # A check that applies to nothing that is declared was generated once, without a case.
        nothing = [item for item in items if _is_check(item) and case_of(item) is None]
        if nothing:
            config.hook.pytest_deselected(items=nothing)
            items[:] = [item for item in items if item not in nothing]
    elif not hasattr(config, "workerinput"):
        raise config.stash[PROBLEM]


def pytest_runtest_setup(item: pytest.Item) -> None:
    # A worker of xdist that raises at collection takes the whole session down with it.
    if PROBLEM in item.config.stash and _is_check(item):
        pytest.fail(str(item.config.stash[PROBLEM]), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    case = case_of(item)
    if case is not None:
        declared.require_moved_rows(item.config, case)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    case = case_of(item)
    if case is not None and (call.when == "call" or report.failed):
        violations = declared.violations_in(call.excinfo.value if call.excinfo else None)
        if violations and report.failed:
            report.longrepr = "\n\n".join(str(violation) for violation in violations)
        outcome = Outcome.of(case, report, [violation.clause for violation in violations])
        report.user_properties.append((Outcome.PROPERTY, outcome.to_json()))
    return report


def case_of(item: pytest.Item) -> Any:
    """The `Case` or `ClassCase` that an item checks; None for any other test."""
    found = next((_params(item)[name] for name in ARGUMENTS if name in _params(item)), None)
    return found if hasattr(found, "clause") else None


def _is_check(item: pytest.Item) -> bool:
    return any(name in _params(item) for name in ARGUMENTS)


def _params(item: pytest.Item) -> dict[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})
