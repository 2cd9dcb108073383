"""The pytest plugin: options, parametrization, and what a run reports.

It is loaded in every pytest session of an environment, so it imports neither torch nor
hypothesis; what needs them is imported once a check of the suite is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from conformance import contract, declared, options
from conformance.items import ARGUMENTS, case_of, failures_in, is_check
from conformance.journal.recorder import Recorder
from conformance.report import Outcome
from conformance.report.reporter import Reporter

PROBLEM = pytest.StashKey[pytest.UsageError]()
REPLAY = "kv-replay"
"""The plugin that is registered where the recorded failures are run again."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from conformance import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kv", "KV-cache pool conformance")
    group.addoption(
        "--kv-device",
        default="cpu",
        metavar="DEVICE",
        help="device to build pools on (cpu, cuda, or sim, a simulated one)",
    )
    group.addoption(
        "--kv-report", metavar="FILE.json", help="write what was checked and found to this file"
    )
    group.addoption(
        "--kv-replay",
        nargs="?",
        const=options.RECORDED,
        metavar="TEXT",
        help="run this one program, as printed by a failure, in each selected check; alone, run "
        "the recorded failures again and say which are fixed",
    )
    parser.addini(
        "kv_level", default="required", help="level of pools that name none: required or strict"
    )
    parser.addini("kv_contract", default="1", help="version of the contract that pools are held to")


def pytest_configure(config: pytest.Config) -> None:
    options.check_options(config)
    recorder = Recorder(config, keeps=not options.is_replay(config))
    config.pluginmanager.register(recorder, "kv-recorder")
    config.pluginmanager.register(Reporter(config), "kv-reporter")
    if options.replays_recorded(config):
        from conformance.journal.replay import Replay

        config.pluginmanager.register(Replay(config, recorder), REPLAY)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for argument in ARGUMENTS:
        if argument in metafunc.fixturenames:
            clause = contract.find_clause(metafunc.function.__name__.removeprefix("test_"))
            try:
                params = _params_of(metafunc, clause)
            except pytest.UsageError as error:
                # Raised here it would come with a traceback of pytest's; see below.
                metafunc.config.stash[PROBLEM], params = error, []
            metafunc.parametrize(argument, params or [pytest.param(None, id="nothing")])


def _params_of(metafunc: pytest.Metafunc, clause: contract.Clause) -> list[Any]:
    replay = metafunc.config.pluginmanager.get_plugin(REPLAY)
    if replay is not None:
        params: list[Any] = replay.params(metafunc.definition, clause)
        return params
    return declared.params_of(metafunc.config, clause)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    replay, only = config.pluginmanager.get_plugin(REPLAY), options.only_check()
    is_whole = replay is None and only is None
    if is_whole and PROBLEM not in config.stash and any(map(case_of, items)):
        try:
            declared.require_checks(config)
        except pytest.UsageError as error:
            config.stash[PROBLEM] = error
    if PROBLEM in config.stash:
        if not hasattr(config, "workerinput"):
            raise config.stash[PROBLEM]
    elif replay is not None:
        _keep(config, items, replay.selects)
    elif only is not None:
        _keep(config, items, lambda item: item.nodeid == only)
    else:
        # A check that applies to nothing that is declared was generated once, without a case.
        _keep(config, items, lambda item: not is_check(item) or case_of(item) is not None)


def _keep(
    config: pytest.Config, items: list[pytest.Item], wanted: Callable[[pytest.Item], bool]
) -> None:
    unwanted = [item for item in items if not wanted(item)]
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        items[:] = [item for item in items if wanted(item)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    # A worker of xdist that raises at collection takes the whole session down with it.
    if PROBLEM in item.config.stash and is_check(item):
        pytest.fail(str(item.config.stash[PROBLEM]), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    case = case_of(item)
    if case is not None:
        declared.complete(item.config, case)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    case = case_of(item)
    if case is not None and (call.when == "call" or report.failed):
        error = call.excinfo.value if call.excinfo else None
        found = failures_in(error)
        if found and report.failed:
            report.longrepr = "\n\n".join(message for message, _ in found)
        outcome = Outcome.of(case, report, [failure for _, failure in found])
        report.user_properties.append((Outcome.PROPERTY, outcome.to_json()))
        _stop_if_lost(item.session, error)
    return report


def _stop_if_lost(session: pytest.Session, error: BaseException | None) -> None:
    """After a device that no longer answers, every check would fail for that alone."""
    from conformance.probe import DeviceLost

    if isinstance(error, DeviceLost):
        session.shouldfail = error.how
