"""Tests that are known to have come out one way or the other."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from conformance.signatures.source.bindings import last_name

Fact = tuple[ast.expr, bool]
"""A test, and how it came out."""


def names_in(expression: ast.expr) -> set[str]:
    """Every name and attribute in an expression."""
    return {last_name(n) for n in ast.walk(expression) if isinstance(n, ast.Name | ast.Attribute)}


def atoms(test: ast.expr, outcome: bool) -> Iterator[Fact]:
    """The tests that a fact consists of."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from atoms(operand, not outcome)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is outcome:
            for value in values:
                yield from atoms(value, outcome)
        case _:
            yield test, outcome


_ASKS = {"parameters", "getfullargspec", "co_varnames", "signature"}


def is_asked_for(parameter: str, facts: Iterable[Fact]) -> bool:
    """Whether facts say that some function was seen to have this parameter."""
    for test, outcome in (atom for fact in facts for atom in atoms(*fact)):
        match test:
            case ast.Compare(left=ast.Constant(value=value), ops=[op], comparators=[where]):
                there = isinstance(op, ast.In) if outcome else isinstance(op, ast.NotIn)
                if there and value == parameter and names_in(where) & _ASKS:
                    return True
    return False
