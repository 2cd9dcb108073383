"""Runs the suite as a downstream would, in this process and with few examples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
from hypothesis import settings

import conformance
import conformance.case

# torch's own samples of operations need two packages more: `tox -e torch-newest` has them.
HAS_OPINFO = all(find_spec(package) for package in ("numpy", "expecttest"))
collect_ignore = [] if HAS_OPINFO else ["test_simdevice_opinfo.py"]

CONFTEST = """
from functools import partial

from hypothesis import settings

from conformance import Family, Known, Pool
from reference_pools import KVPool, MLAPool, TokenPool
from reference_pools.broken.sglang_37534 import NarrowHostRows
from reference_pools.declarations import make_mla, make_token

settings.register_profile("few", max_examples=5, database=None, derandomize=True)
settings.load_profile("few")
{classes}

def pytest_kv_pools():
    return {entries}
"""

Downstream = Callable[..., pytest.RunResult]


@pytest.fixture
def fresh_suite(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The suite is imported anew by what runs inside the test, and the profile is put back.

    A check takes its settings from the profile that is active when the suite is imported.
    """
    settings.register_profile("as-before", settings())
    if hasattr(conformance, "suite"):
        monkeypatch.setattr(conformance, "suite", conformance.suite)
    for name in [name for name in sys.modules if name.startswith("conformance.suite")]:
        monkeypatch.delitem(sys.modules, name)
    yield
    settings.load_profile("as-before")


@pytest.fixture
def downstream(pytester: pytest.Pytester, fresh_suite: None) -> Downstream:
    """`downstream(entries, *options, classes="", body=...)`: the result of one pytest run."""

    def run(
        entries: str,
        *options: str,
        classes: str = "",
        body: str = "from conformance.suite import *",
    ) -> pytest.RunResult:
        pytester.makeconftest(CONFTEST.format(classes=classes, entries=entries))
        pytester.makepyfile(test_kv=body)
        return pytester.runpytest_inprocess("-q", *options)

    return run
