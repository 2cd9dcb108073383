"""Where calls are made in a scope, and what must hold for each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

Fact = tuple[ast.expr, bool]
"""A test, and how it came out."""


@dataclass(frozen=True, slots=True)
class Around:
    """What lies around an expression: facts that hold, names that lambdas and comprehensions
    hide, and whether it may not be reached at all."""

    facts: tuple[Fact, ...] = ()
    hidden: frozenset[str] = frozenset()
    is_conditional: bool = False

    def given(self, test: ast.expr, outcome: bool) -> Around:
        return replace(self, facts=(*self.facts, (test, outcome)), is_conditional=True)

    def sometimes(self) -> Around:
        return replace(self, is_conditional=True)

    def hiding(self, *targets: ast.AST) -> Around:
        names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        names |= {a.arg for t in targets for a in ast.walk(t) if isinstance(a, ast.arg)}
        return replace(self, hidden=self.hidden | names)

    def after(self, statement: ast.stmt) -> Around:
        """What holds behind a statement that was passed."""
        match statement:
            case ast.Assert(test=test):
                return replace(self, facts=(*self.facts, (test, True)))
            case ast.If(test=test, body=body, orelse=orelse):
                facts = self.facts
                facts += ((test, False),) if _leaves(body) else ()
                facts += ((test, True),) if orelse and _leaves(orelse) else ()
                return replace(self, facts=facts)
        return self


Site = tuple[ast.Call, Around]


def sites(body: Sequence[ast.stmt], around: Around = Around()) -> Iterator[Site]:
    """Every call in these statements; those in the bodies of inner classes and functions are
    theirs."""
    for statement in body:
        yield from _in_statement(statement, around)
        around = around.after(statement)


def _in_statement(statement: ast.stmt, around: Around) -> Iterator[Site]:
    match statement:
        case ast.ClassDef(decorator_list=decorators, bases=bases, keywords=keywords):
            yield from _in_all([*decorators, *bases, *(k.value for k in keywords)], around)
        case (
            ast.FunctionDef(decorator_list=decorators, args=arguments)
            | ast.AsyncFunctionDef(decorator_list=decorators, args=arguments)
        ):
            yield from _in_all([*decorators, *defaults(arguments)], around)
        case ast.If(test=test, body=body, orelse=orelse):
            yield from _in(test, around)
            yield from sites(body, around.given(test, True))
            yield from sites(orelse, around.given(test, False))
        case ast.While(test=test, body=body, orelse=orelse):
            yield from _in(test, around)
            yield from sites(body, around.given(test, True))
            yield from sites(orelse, around.sometimes())
        case ast.With() | ast.AsyncWith():
            yield from _in_all(statement.items, around)
            yield from sites(statement.body, around)
        case ast.For() | ast.AsyncFor():
            yield from _in_all([statement.iter, statement.target], around)
            yield from sites([*statement.body, *statement.orelse], around.sometimes())
        case ast.Try() | ast.TryStar():
            parts = [statement.body, *(h.body for h in statement.handlers)]
            for part in (*parts, statement.orelse, statement.finalbody):
                yield from sites(part, around.sometimes())
        case ast.Match(subject=subject, cases=cases):
            yield from _in(subject, around)
            for case in cases:
                yield from _in_all([case.guard] if case.guard else [], around.sometimes())
                yield from sites(case.body, around.sometimes())
        case _:
            yield from _in_all(ast.iter_child_nodes(statement), around)


def _in_all(nodes: Sequence[ast.AST] | Iterator[ast.AST], around: Around) -> Iterator[Site]:
    for node in nodes:
        yield from _in(node, around)


def _in(node: ast.AST, around: Around) -> Iterator[Site]:
    if isinstance(node, ast.Call):
        yield node, around
    match node:
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield from _in(test, around)
            yield from _in(body, around.given(test, True))
            yield from _in(orelse, around.given(test, False))
        case ast.BoolOp(op=op, values=values):
            for value in values:
                yield from _in(value, around)
                around = around.given(value, isinstance(op, ast.And))
        case ast.Lambda(args=arguments, body=body):
            yield from _in_all(defaults(arguments), around)
            yield from _in(body, around.hiding(arguments))
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            yield from _in_comprehension(node, around)
        case _:
            yield from _in_all(ast.iter_child_nodes(node), around)


def _in_comprehension(
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, around: Around
) -> Iterator[Site]:
    around = around.sometimes()
    for generator in node.generators:
        yield from _in(generator.iter, around)
        around = around.hiding(generator.target)
        for test in generator.ifs:
            yield from _in(test, around)
            around = around.given(test, True)
    results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    yield from _in_all(results, around)


def defaults(arguments: ast.arguments) -> list[ast.expr]:
    """The expressions that are evaluated where a function is defined."""
    return [*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)]


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a block never runs into what follows it."""
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)
