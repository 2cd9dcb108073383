"""The classes of a family: packages that are imported, exemptions, and the coverage gate."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import Family
from conformance.contract import CLAUSES
from conformance.signatures.family import class_cases
from conformance.signatures.imported import members

ROOT = """
class Root:
    def get_cpu_copy(self, indices): ...
    def load_cpu_copy(self, kv_cache_cpu, indices): ...
"""
SUB = "from {name} import Root\nclass {cls}(Root): ...\n"
ABSTRACT = """
import abc
from {name} import Root
class Base(Root, abc.ABC):
    @abc.abstractmethod
    def layers(self): ...
class Leaf(Base):
    def layers(self): ...
"""

MakePackage = Callable[..., str]


@pytest.fixture
def package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> MakePackage:
    """Writes a package of this test's own name; `{name}` in a file is that name."""
    monkeypatch.syspath_prepend(tmp_path)
    name = "engine_" + "".join(c if c.isalnum() else "_" for c in request.node.name)

    def make(**files: str) -> str:
        for path, text in ({"__init__": ROOT} | files).items():
            file = tmp_path / name / f"{path}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.format(name=name, cls="Sub"), encoding="utf-8")
        importlib.invalidate_caches()
        return name

    return make


def family_of(name: str, **arguments: object) -> Family:
    root = importlib.import_module(name).Root
    return Family(root, **({"packages": [name]} | arguments))  # type: ignore[arg-type]


def names(family: Family) -> list[str]:
    return [f"{cls.__module__}.{cls.__name__}" for cls in members(family).classes]


def test_packages_are_walked_to_the_last_module(package: MakePackage) -> None:
    name = package(
        **{
            "flat": SUB,
            "deep/__init__": "",
            "deep/deeper/__init__": "",
            "deep/deeper/leaf": SUB,
        }
    )
    assert names(family_of(name)) == [f"{name}.deep.deeper.leaf.Sub", f"{name}.flat.Sub"]


def test_single_module_can_be_named(package: MakePackage) -> None:
    name = package(flat=SUB, other=SUB)
    assert names(family_of(name, packages=[f"{name}.flat"])) == [f"{name}.flat.Sub"]


def test_root_is_no_member(package: MakePackage) -> None:
    assert names(family_of(package())) == []


def test_classes_outside_the_packages_do_not_count(package: MakePackage) -> None:
    name = package(flat=SUB, other=SUB)
    importlib.import_module(f"{name}.other")
    assert names(family_of(name, packages=[f"{name}.flat"])) == [f"{name}.flat.Sub"]


def test_without_packages_every_class_that_exists_counts(package: MakePackage) -> None:
    name = package(flat=SUB, other=SUB)
    importlib.import_module(f"{name}.other")
    assert names(family_of(name, packages=[])) == [f"{name}.other.Sub"]


def test_package_whose_name_begins_the_same_is_another(package: MakePackage) -> None:
    name = package(flat=SUB, flat_too=SUB)
    importlib.import_module(f"{name}.flat_too")
    assert names(family_of(name, packages=[f"{name}.flat"])) == [f"{name}.flat.Sub"]


def test_subclasses_of_subclasses_are_members(package: MakePackage) -> None:
    name = package(a=SUB, b="from {name}.a import Sub\nclass Deep(Sub): ...\n")
    assert names(family_of(name)) == [f"{name}.a.Sub", f"{name}.b.Deep"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import no_such_engine_backend\n", "ModuleNotFoundError: No module named"),
        ("raise RuntimeError('needs a GPU')\n", "RuntimeError: needs a GPU"),
        ("def f(:\n", "SyntaxError: "),
    ],
)
def test_module_that_cannot_be_imported_is_reported(
    package: MakePackage, text: str, error: str
) -> None:
    name = package(flat=SUB, bad=text)
    found = members(family_of(name))
    assert [cls.__module__ for cls in found.classes] == [f"{name}.flat"]
    assert set(found.unimportable) == {f"{name}.bad"}
    assert found.unimportable[f"{name}.bad"].startswith(error)


@pytest.mark.parametrize("exempt", ["{name}.bad", "{name}"])
def test_exempt_module_is_not_imported(package: MakePackage, exempt: str) -> None:
    name = package(bad="raise RuntimeError('needs a GPU')\n")
    found = members(family_of(name, exempt={exempt.format(name=name): "needs a GPU"}))
    assert (found.unimportable, found.stale) == ({}, ())


def test_package_that_does_not_exist_is_reported(package: MakePackage) -> None:
    found = members(family_of(package(), packages=["no_such_engine"]))
    assert set(found.unimportable) == {"no_such_engine"}


# -- exemptions ----------------------------------------------------------------


def gate(family: Family, made: frozenset[type] = frozenset()) -> dict[str, bool]:
    """Each case of the coverage gate: whether it is exempt."""
    cases = class_cases(family, CLAUSES["every_subclass_is_covered"], made)
    return {case.name: case.is_exempt for case in cases}


def test_exempt_by_class(package: MakePackage) -> None:
    name = package(flat=SUB)
    cls = importlib.import_module(f"{name}.flat").Sub
    family = family_of(name, exempt={cls: "abandoned"})
    assert gate(family) == {"Sub": True}
    assert members(family).stale == ()


def test_exempt_by_dotted_class(package: MakePackage) -> None:
    name = package(flat=SUB)
    family = family_of(name, exempt={f"{name}.flat.Sub": "abandoned"})
    assert gate(family) == {"Sub": True}
    assert members(family).stale == ()


def test_exempt_by_dotted_module_takes_its_classes_out(package: MakePackage) -> None:
    name = package(flat=SUB, other=SUB)
    importlib.import_module(f"{name}.flat")
    family = family_of(name, exempt={f"{name}.flat": "abandoned"})
    assert names(family) == [f"{name}.other.Sub"]
    assert members(family).stale == ()


def test_exempt_class_is_still_held_to_the_rules(package: MakePackage) -> None:
    name = package(flat=SUB)
    family = family_of(name, exempt={f"{name}.flat.Sub": "abandoned"})
    cases = class_cases(family, CLAUSES["override_accepts_every_keyword"], ())
    assert [case.name for case in cases] == ["Sub"]


@pytest.mark.parametrize(
    "stale", ["{name}.flat.Gone", "{name}.gone", "{name}.gone.Sub", "no_such_engine.Sub"]
)
def test_exemption_of_nothing_fails_the_gate(package: MakePackage, stale: str) -> None:
    name = package(flat=SUB)
    key = stale.format(name=name)
    family = family_of(name, exempt={key: "was there once"})
    assert members(family).stale == (key,)
    (case,) = (
        c for c in class_cases(family, CLAUSES["every_subclass_is_covered"], ()) if c.name == key
    )
    with pytest.raises(AssertionError, match="is exempt, but is no class or module here"):
        case.check()


def test_exempt_class_that_is_no_member_fails_the_gate(package: MakePackage) -> None:
    name = package()
    assert members(family_of(name, exempt={Path: "no pool"})).stale == (f"{Path.__module__}.Path",)


# -- what the gate asks of -------------------------------------------------------


def test_abstract_class_is_not_in_the_gate_but_under_the_rules(package: MakePackage) -> None:
    family = family_of(package(flat=ABSTRACT))
    assert gate(family) == {"Leaf": False}
    rule = class_cases(family, CLAUSES["override_keeps_names"], ())
    assert [case.name for case in rule] == ["Base", "Leaf"]


def test_gate_fails_for_a_module_that_cannot_be_imported(package: MakePackage) -> None:
    name = package(bad="import no_such_engine_backend\n")
    (case,) = class_cases(family_of(name), CLAUSES["every_subclass_is_covered"], ())
    assert case.name == f"{name}.bad"
    with pytest.raises(AssertionError, match="cannot be imported: ModuleNotFoundError"):
        case.check()


def test_unimportable_module_is_told_by_the_gate_alone(package: MakePackage) -> None:
    name = package(bad="import no_such_engine_backend\n")
    assert class_cases(family_of(name), CLAUSES["override_keeps_names"], ()) == []


def test_class_that_a_pool_makes_is_covered(package: MakePackage) -> None:
    name = package(flat=SUB, other=SUB)
    family = family_of(name)
    first, second = members(family).classes
    cases = class_cases(family, CLAUSES["every_subclass_is_covered"], {first})
    assert {case.cls: case.covered for case in cases} == {first: True, second: False}


def test_folders_without_init_are_walked_and_programs_are_not_run(tmp_path, monkeypatch) -> None:
    package = tmp_path / "kv_namespaced"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text(
        "class Root:\n    def get_cpu_copy(self): ...\n    def load_cpu_copy(self): ...\n"
    )
    (package / "__main__.py").write_text("raise SystemExit(0)")
    (package / "exits.py").write_text("raise SystemExit(3)")
    (package / "inner" / "mod.py").write_text(
        "from kv_namespaced import Root\nclass Inner(Root): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    root = __import__("kv_namespaced").Root
    found = members(Family(root, packages=["kv_namespaced"]))
    assert [cls.__name__ for cls in found.classes] == ["Inner"]
    assert found.unimportable == {"kv_namespaced.exits": "SystemExit: 3"}
