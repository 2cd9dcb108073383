"""Where calls are made in a scope, and what must hold for each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from conformance.signatures.source.bindings import last_name
from conformance.signatures.source.facts import Fact, names_in
from conformance.signatures.source.scopes import stands_on


@dataclass(frozen=True, slots=True)
class Around:
    """What lies around an expression: facts that hold, names that lambdas and comprehensions
    hide, whether it may not be reached at all, and whether it `survives` that a call of it
    does not bind: `TypeError` is caught."""

    facts: tuple[Fact, ...] = ()
    hidden: frozenset[str] = frozenset()
    is_conditional: bool = False
    survives: bool = False

    def given(self, test: ast.expr, outcome: bool) -> Around:
        return replace(self, facts=(*self.facts, (test, outcome)), is_conditional=True)

    def sometimes(self) -> Around:
        return replace(self, is_conditional=True)

    def surviving(self, survives: bool) -> Around:
        return replace(self, survives=self.survives or survives)

    def hiding(self, *targets: ast.AST) -> Around:
        names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        names |= {a.arg for t in targets for a in ast.walk(t) if isinstance(a, ast.arg)}
        return replace(self, hidden=self.hidden | names)

    def after(self, statement: ast.stmt) -> Around:
        """What holds behind a statement that was passed: nothing of what it changes."""
        if not self.facts and not _tells(statement):
            return self
        stored = {last_name(n) for n in ast.walk(statement) if _is_stored(n)}
        facts = tuple(fact for fact in self.facts if not stored & names_in(fact[0]))
        match statement:
            case ast.Assert(test=test):
                facts += ((test, True),)
            case ast.If(test=test, body=body, orelse=orelse) if not stored & names_in(test):
                facts += ((test, False),) if _leaves(body) else ()
                facts += ((test, True),) if orelse and _leaves(orelse) else ()
        return replace(self, facts=facts)


Site = tuple[ast.Call, Around]


@dataclass(frozen=True, slots=True)
class Sites:
    """Finds the calls in statements that stand on some lines, which are sorted; those in the
    bodies of inner classes and functions are theirs."""

    lines: Sequence[int]

    def of(self, body: Sequence[ast.stmt], around: Around = Around()) -> Iterator[Site]:
        for statement in body:
            if stands_on(statement, self.lines):
                yield from self._in_statement(statement, around)
            around = around.after(statement)

    def _in_statement(self, statement: ast.stmt, around: Around) -> Iterator[Site]:
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
                yield from self.of(body, around.given(test, True))
                yield from self.of(orelse, around.given(test, False))
            case ast.While(test=test, body=body, orelse=orelse):
                yield from _in(test, around)
                yield from self.of(body, around.given(test, True))
                yield from self.of(orelse, around.sometimes())
            case ast.With() | ast.AsyncWith():
                yield from _in_all(statement.items, around)
                yield from self.of(statement.body, around.surviving(_expects(statement)))
            case ast.For() | ast.AsyncFor():
                yield from _in_all([statement.iter, statement.target], around)
                yield from self.of([*statement.body, *statement.orelse], around.sometimes())
            case ast.Try() | ast.TryStar():
                inside = around.sometimes().surviving(_catches(statement))
                yield from self.of(statement.body, inside)
                parts = [h.body for h in statement.handlers]
                for part in (*parts, statement.orelse, statement.finalbody):
                    yield from self.of(part, around.sometimes())
            case ast.Match(subject=subject, cases=cases):
                yield from _in(subject, around)
                for case in cases:
                    inside = around.sometimes()
                    if isinstance(case.pattern, ast.MatchClass):
                        inside = inside.given(_is_instance(subject, case.pattern.cls), True)
                    yield from _in_all([case.guard] if case.guard else [], inside)
                    yield from self.of(case.body, inside)
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


def _tells(statement: ast.stmt) -> bool:
    """Whether something is known behind the statement that was not before."""
    if isinstance(statement, ast.If):
        return _leaves(statement.body) or (bool(statement.orelse) and _leaves(statement.orelse))
    return isinstance(statement, ast.Assert)


def _expects(statement: ast.With | ast.AsyncWith) -> bool:
    """Whether `pytest.raises(TypeError)` or `suppress(TypeError)` is around the body."""
    return any(
        isinstance(item.context_expr, ast.Call)
        and any("TypeError" in names_in(argument) for argument in item.context_expr.args)
        for item in statement.items
    )


def _catches(statement: ast.Try | ast.TryStar) -> bool:
    """Whether a `TypeError` of the body is caught: by name, or by a handler of everything
    that calls one of the same methods."""
    called = {last_name(n.func) for s in statement.body for n in ast.walk(s) if _is_method(n)}
    for handler in statement.handlers:
        caught = names_in(handler.type) if handler.type else {"Exception"}
        if "TypeError" in caught:
            return True
        again = {last_name(n.func) for s in handler.body for n in ast.walk(s) if _is_method(n)}
        if caught & {"Exception", "BaseException"} and called & again:
            return True
    return False


def _is_method(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def _is_instance(subject: ast.expr, cls: ast.expr) -> ast.expr:
    """The test that a class pattern is."""
    return ast.Call(func=ast.Name("isinstance", ast.Load()), args=[subject, cls], keywords=[])


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a block never runs into what follows it."""
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)


def _is_stored(node: ast.AST) -> TypeGuard[ast.expr]:
    return isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load)
