"""How the repository is laid out."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from conformance import suite
from conformance.contract import CLAUSES

ROOT = Path(__file__).parent.parent
FOLDERS = ("conformance", "reference_pools", "tests", "examples", "benchmarks", "docs")
SOURCES = sorted(
    [*ROOT.glob("*.py"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))]
)
SUITE = sorted(path for path in SOURCES if path.is_relative_to(ROOT / "conformance"))


def imported(path: Path) -> set[str]:
    """The packages that a module names in any import, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SUITE, ids=relative)
def test_suite_never_imports_the_reference_pools(path: Path) -> None:
    assert "reference_pools" not in imported(path)


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_file_is_short_enough_to_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_sources_were_found() -> None:
    assert Path(__file__) in SOURCES
    assert ROOT / "conformance" / "plugin.py" in SUITE


def test_every_clause_has_one_check_and_every_check_a_clause() -> None:
    checks = {name for name in vars(suite) if name.startswith("test_") and name in suite.__all__}
    assert checks == {f"test_{clause}" for clause in CLAUSES}


@pytest.mark.parametrize("clause", CLAUSES)
def test_check_takes_the_case_of_its_subject(clause: str) -> None:
    check = getattr(suite, f"test_{clause}")
    argument = "kv_class" if CLAUSES[clause].subject == "signatures" else "kv_case"
    assert argument in inspect.signature(check).parameters


def test_no_check_is_defined_twice() -> None:
    defined = [
        node.name
        for path in sorted((ROOT / "conformance" / "suite").glob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert sorted(defined) == sorted(f"test_{clause}" for clause in CLAUSES)
