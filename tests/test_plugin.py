"""The plugin as a downstream meets it: options, ids, the table, and what fails a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

TOKEN = 'Pool("token", make_token, kind="token")'
MLA = 'Pool("mla", make_mla, kind="mla")'
NARROW = 'Pool("narrow", partial(make_mla, cls=NarrowHostRows), kind="mla"{more})'
SUITE = "from conformance.suite import *"


@pytest.fixture
def engine(downstream):
    """`downstream`, with the declarations as arguments."""

    def run(*entries: str, options: tuple[str, ...] = (), body: str = SUITE):
        return downstream(f"[{', '.join(entries)}]", *options, body=body)

    return run


def test_unused_plugin_imports_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing_heavy():
            assert "conformance.plugin" in sys.modules
            assert not {"torch", "hypothesis"} & set(sys.modules)
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_ids_are_pool_names(engine) -> None:
    result = engine(TOKEN, MLA, options=("--collect-only", "-k", "same_rows"))
    result.stdout.fnmatch_lines(
        ["*::test_reload_restores_the_same_rows[[]token[]]", "*_the_same_rows[[]mla[]]"]
    )


def test_table_and_report_of_a_passing_run(engine, pytester: pytest.Pytester) -> None:
    result = engine(TOKEN, options=("--kv-report=out.json",))
    assert result.ret == 0
    result.stdout.re_match_lines(
        [r"pool +clauses +programs", r"token +(\d+)/\1 +\d+ +\d+ +\d+ +- +- +-$"]
    )
    report = json.loads((pytester.path / "out.json").read_text())
    assert report["schema"] == 1
    assert report["environment"]["device"] == "cpu"
    moved = [o["rows"] for o in report["outcomes"] if o["clause"].startswith("reload")]
    assert sum(moved) > 0


def test_workers_pass_the_same_checks(engine, pytester: pytest.Pytester) -> None:
    engine(TOKEN, MLA, options=("--collect-only",))  # writes the files
    tables = [
        [match[0] for line in run.outlines if (match := re.match(r"\w+ +(\d+)/\1 ", line))]
        for run in (pytester.runpytest_subprocess("-q", *options) for options in ((), ("-n", "2")))
    ]
    assert len(tables[0]) == 2
    assert tables[0] == tables[1]


def test_failure_is_told_and_replayed(engine) -> None:
    failing = "-k", "reload_restores_the_same_rows"
    result = engine(NARROW.format(more=""), options=failing)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "narrow breaks reload_restores_the_same_rows (seen by 1 check)" in text
    replay = re.search(r"--kv-replay '(.*)'", text)
    assert replay is not None
    again = engine(NARROW.format(more=""), options=(*failing, "--kv-replay", replay[1]))
    again.assert_outcomes(failed=1)
    assert re.search(r"found .*", text)[0] == re.search(r"found .*", again.stdout.str())[0]
    fixed = engine(MLA, options=(*failing, "--kv-replay", replay[1]))
    fixed.assert_outcomes(passed=1)


WITNESS = "write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5"
KNOWN = ', known={{"{clause}": Known("narrow rows", witness="{witness}")}}'


def test_known_failure_is_expected_and_tolerated_elsewhere(engine) -> None:
    known = KNOWN.format(clause="reload_restores_the_same_rows", witness=WITNESS)
    result = engine(NARROW.format(more=known))
    assert result.ret == 0
    result.stdout.re_match_lines([r"narrow +\d+/\d+ .* 1 +- +-$", r"\d+ passed, .*1 xfailed in .*"])


def test_known_failure_that_is_fixed_fails_the_run(engine) -> None:
    known = KNOWN.format(clause="reload_restores_the_same_rows", witness=WITNESS)
    fixed = MLA.replace(")", f"{known})")
    result = engine(fixed, options=("-k", "reload_restores_the_same_rows"))
    result.assert_outcomes(failed=1)
    assert "delete this entry of `known`" in result.stdout.str()


def test_witness_of_another_clause_fails_the_run(engine) -> None:
    known = KNOWN.format(clause="offload_changes_nothing", witness=WITNESS)
    result = engine(NARROW.format(more=known), options=("-k", "offload_changes_nothing"))
    result.assert_outcomes(failed=1)


def test_pool_that_lacks_the_verbs(engine) -> None:
    lacking = (
        'Pool("none", partial(make_mla, cls=__import__("reference_pools.broken.sglang_33385",'
        ' fromlist=["x"]).NeverImplements), kind="mla", lacks=["offload"])'
    )
    result = engine(lacking)
    result.assert_outcomes(passed=5)
    result.stdout.re_match_lines([r"none +5/5 .* offload +-$"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--kv-device=nonsense",), "--kv-device=nonsense: not a torch device"),
        (("--kv-report=out.txt",), "the name must end in .json"),
        (("-o", "kv_level=loose"), "kv_level is 'loose', expected one of required, strict"),
        (("-o", "kv_contract=99"), "kv_contract is '99', expected a number from 1 to 1"),
    ],
)
def test_bad_option_is_named(engine, options: tuple[str, ...], message: str) -> None:
    result = engine(TOKEN, options=options)
    assert result.ret != 0
    assert message in "\n".join((*result.outlines, *result.errlines))


@pytest.mark.parametrize(
    ("entries", "body", "message"),
    [
        ((TOKEN, TOKEN), SUITE, "two pools, allocators or host tiers are named 'token'"),
        (("1",), SUITE, "1 is not a Pool, an Allocator, a HostTier or a Family"),
        (
            (TOKEN,),
            "from conformance.suite.test_signatures import *",
            "",
        ),
        (
            (TOKEN, "Family(KVPool, packages=['reference_pools.token'])"),
            "from conformance.suite.test_signatures import *",
            "Pool 'token' has no check",
        ),
    ],
)
def test_bad_declaration_fails_the_run(engine, entries, body, message) -> None:
    result = engine(*entries, body=body)
    assert result.ret != 0
    assert message in "\n".join((*result.outlines, *result.errlines))


def test_level_is_an_ini_option(engine) -> None:
    run = [engine(TOKEN, options=("-o", f"kv_level={level}")) for level in ("required", "strict")]
    checks = [re.search(r"token +(\d+)/\1 ", result.stdout.str()) for result in run]
    assert int(checks[0][1]) < int(checks[1][1])


def test_check_that_moves_no_row_fails(engine) -> None:
    empty = """
    from hypothesis.strategies import DataObject
    from conformance.case import Case
    from conformance.suite.checks import for_each_program

    @for_each_program
    def test_every_verb_works(kv_case: Case, data: DataObject) -> None:
        pass
    """
    result = engine(TOKEN, body=empty)
    result.assert_outcomes(failed=1)
    assert "no row of pool 'token' was reloaded" in result.stdout.str()


def test_command_line_prints_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    from conformance.__main__ import main
    from conformance.contract import CLAUSES

    assert main(["clauses"]) == 0
    printed = capsys.readouterr().out
    assert all(f"\n{clause}  [" in printed for clause in CLAUSES)


def test_command_line_runs_installed_pools(pytester: pytest.Pytester) -> None:
    result = pytester.runpython_c(
        "import sys; from conformance.__main__ import main; "
        "sys.exit(main(['-k', 'empty_set_is_legal']))"
    )
    assert result.ret == 0
    result.stdout.re_match_lines([r"dsa +1/1 +10\d ", r"hybrid +1/1", r"mla +1/1", r"token +1/1"])
    assert (pytester.path / ".kv_cache" / "v").is_dir()


def test_command_line_keeps_a_cache_where_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from conformance import __main__

    given: list[list[str]] = []
    monkeypatch.setattr(pytest, "main", lambda options: given.append(options) or 0)
    monkeypatch.chdir(tmp_path)
    __main__.main([])
    monkeypatch.setattr(__main__.os, "access", lambda *asked: False)
    __main__.main([])
    assert f"cache_dir={tmp_path}/.kv_cache" in given[0]
    assert "no:cacheprovider" in given[1]
