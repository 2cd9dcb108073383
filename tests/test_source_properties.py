"""Signatures and rules on drawn parameter lists: from source as from the running code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Parameter, Signature
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from source_trees import PAIR as PAIRED
from source_trees import POSITION, REQUIRES, write

from conformance.signatures.findings import Scan
from conformance.signatures.live import member_of
from conformance.signatures.rules import RULES
from conformance.signatures.source import scan

PAIR = ("get_cpu_copy", "load_cpu_copy")
FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NAMES = ("indices", "mamba_indices", "π")
DEFAULTS = ("None", "0", "-1", "1.5", "'a'", "()", "(1, 'x')", "[]", "{'a': {2}}", "True", "b'y'")


@dataclass(frozen=True)
class Drawn:
    """Parameters without `self`, as text in a definition."""

    places: tuple[str, ...]
    only_places: int
    others: tuple[str, ...]

    def __str__(self) -> str:
        parts = ["self", *self.places]
        if self.only_places >= 0:
            parts.insert(self.only_places + 1, "/")
        return ", ".join([*parts, *self.others])


@st.composite
def parameters(draw: st.DrawFn) -> Drawn:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    cut = draw(st.integers(0, len(names)))
    places, keywords = names[:cut], names[cut:]
    first_default = draw(st.integers(0, cut))
    value = st.sampled_from(DEFAULTS)
    given_places = [n if i < first_default else f"{n}={draw(value)}" for i, n in enumerate(places)]
    given_keywords = [f"{n}={draw(value)}" if draw(st.booleans()) else n for n in keywords]
    star = draw(st.sampled_from(["*args", "*"] if keywords else ["*args", ""]))
    rest = draw(st.sampled_from(["**rest", ""]))
    others = tuple(part for part in (star, *given_keywords, rest) if part)
    return Drawn(tuple(given_places), draw(st.integers(-1, cut)), others)


def source(name: str, base: str, get: Drawn, load: Drawn) -> str:
    return (
        f"class {name}{base}:\n    def get_cpu_copy({get}): ...\n"
        f"    def load_cpu_copy({load}): ...\n"
    )


@pytest.fixture(scope="module")
def scanned_text(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Scan]:
    """The scan of one module with this text, whose root is `Root`."""
    folder = tmp_path_factory.mktemp("drawn")
    numbers: Iterator[int] = count()

    def run(text: str) -> Scan:
        place: Path = folder / str(next(numbers))
        write(place, {"drawn.py": text})
        return scan("drawn:Root", [str(place / "drawn.py")], PAIR)

    return run


def executed(text: str) -> ModuleType:
    module = ModuleType("drawn")
    exec(compile(text, "drawn", "exec", dont_inherit=True), module.__dict__)
    return module


def without_self(function: Callable[..., object]) -> Signature:
    _, *rest = inspect.signature(function).parameters.values()
    return Signature(rest)


@FEW
@given(get=parameters(), load=parameters())
def test_signature_from_source_is_that_of_the_running_function(
    scanned_text: Callable[[str], Scan], get: Drawn, load: Drawn
) -> None:
    text = source("Root", "", get, load)
    found = scanned_text(text).methods["drawn.Root"]
    root = executed(text).Root
    for verb in PAIR:
        expected = without_self(getattr(root, verb))
        assert found[verb] == expected
        assert str(found[verb]) == str(expected)
        types = [type(p.default) for p in found[verb].parameters.values()]
        assert types == [type(p.default) for p in expected.parameters.values()]


@FEW
@given(root=st.tuples(parameters(), parameters()), sub=st.tuples(parameters(), parameters()))
def test_rules_tell_the_same_from_source_as_live(
    scanned_text: Callable[[str], Scan],
    root: tuple[Drawn, Drawn],
    sub: tuple[Drawn, Drawn],
) -> None:
    text = source("Root", "", *root) + source("Sub", "(Root)", *sub)
    module = executed(text)
    above, below = (member_of(cls, module.Root, PAIR) for cls in (module.Root, module.Sub))
    live = {
        (clause, problem.verb, problem.parameter, problem.text)
        for clause, rule in RULES.items()
        for problem in rule(above, below, PAIR)
        if not problem.only_if_met
    }
    event("some problem" if live else "no problem")
    found = scanned_text(text)
    read = [(f.clause, f.verb, f.parameter, f.text) for f in found.findings]
    assert set(read) == live
    assert len(read) == len(live)
    assert {f.cls for f in found.findings} <= {"drawn.Sub"}


@settings(FEW, max_examples=100)
@given(root=parameters(), sub=parameters())
def test_call_is_an_error_exactly_where_the_override_refuses_it(
    scanned_text: Callable[[str], Scan], root: Drawn, sub: Drawn
) -> None:
    """What is accepted may still be an error: where an argument arrives as another parameter.

    A positional-only name that is passed by keyword is left out where there is a rest: Python
    puts it there, `inspect` refuses it before Python 3.13, and either way it is lost."""
    assume(not any(d.only_places > 0 and "**rest" in d.others for d in (root, sub)))
    load = "    def load_cpu_copy(self): ...\n"
    text = f"class Root:\n    def get_cpu_copy({root}): ...\n{load}"
    text += f"class Sub(Root):\n    def get_cpu_copy({sub}): ...\n"
    module = executed(text)
    for places, keywords in _calls(module.Root()):
        arguments = ", ".join([*map(str, range(places)), *(f"{name}=0" for name in keywords)])
        found = scanned_text(f"{text}def f(pool):\n    pool.get_cpu_copy({arguments})\n")
        told = [(f.severity, f.clause, f.parameter) for f in found.findings]
        wrong = {clause for severity, clause, _ in told if severity == "error"} - {PAIRED}
        is_accepted = _accepts(module.Sub(), places, keywords)
        event("accepted" if is_accepted else "refused")
        if is_accepted:
            assert wrong <= {POSITION, REQUIRES}, f"{arguments}: {told}"
        else:
            assert wrong, f"{arguments}: {told}"


def _calls(root: Any) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Legal calls with the first arguments by position, and others by name."""
    signature = inspect.signature(root.get_cpu_copy)
    places = [p for p in signature.parameters.values() if p.kind < Parameter.VAR_POSITIONAL]
    for number in range(len(places) + 1):
        rest = [
            p
            for p in signature.parameters.values()
            if p not in places[:number]
            and p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        ]
        required = tuple(p.name for p in rest if p.default is Parameter.empty)
        for keywords in dict.fromkeys([required, tuple(p.name for p in rest)]):
            if _accepts(root, number, keywords):
                yield number, keywords


def _accepts(pool: Any, places: int, keywords: tuple[str, ...]) -> bool:
    """Whether Python lets the call through; the body does nothing."""
    try:
        pool.get_cpu_copy(*range(places), **dict.fromkeys(keywords))
    except TypeError:
        return False
    return True
