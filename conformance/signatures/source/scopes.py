"""Scopes and classes of one module's source."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from conformance.signatures.findings import Place
from conformance.signatures.source.bindings import (
    UNKNOWN,
    Function,
    Names,
    bind,
    bind_until,
    last_name,
)
from conformance.signatures.source.files import SourceFile


@dataclass(slots=True, eq=False)
class Scope:
    """The statements of a module, a class body or a function, and what lies around them.
    `cls` is the class whose body or whose method this is, or is in."""

    module: Module
    parent: Scope | None
    body: Sequence[ast.stmt]
    qualname: str = ""
    cls: SourceClass | None = None
    function: Function | None = None
    _names: Names | None = None
    is_method: bool = False

    @property
    def names(self) -> Names:
        """What each name may stand for."""
        if self._names is None:
            self._names = self._walrus() | bind(self.body, self.module.package, self._arguments())
        return self._names

    def names_at(self, line: int) -> Names:
        """What each name may stand for where the statement on a line begins."""
        before = self._walrus() | self._arguments()
        return bind_until(line, self.body, self.module.package, before)

    def holder(self, name: str) -> Scope | None:
        """The scope in which a name is found."""
        at: Scope | None = self
        while at is not None and name not in at.names:
            at = at.parent
        return at

    def _arguments(self) -> Names:
        arguments = every_argument(self.function) if self.function else ()
        return {a.arg: (a,) for a in arguments}

    def _walrus(self) -> Names:
        if b":=" not in self.module.file.data:
            return {}
        nodes = (node for statement in self.body for node in ast.walk(statement))
        return {n.target.id: (UNKNOWN,) for n in nodes if isinstance(n, ast.NamedExpr)}

    @property
    def is_class(self) -> bool:
        """Whether this is the body of a class."""
        return self.cls is not None and self.cls.body is self

    @property
    def first(self) -> str:
        """The name of a method's first parameter; "" for all else, and for a static method."""
        if self.function is None or not self.is_method:
            return ""
        names = {last_name(decorator) for decorator in self.function.decorator_list}
        argument = next(every_argument(self.function), None)
        return argument.arg if argument and not names & {"staticmethod", "classmethod"} else ""

    def hiding(self, names: Collection[str]) -> Scope:
        """A scope inside this one in which these names stand for something unknown."""
        if not names:
            return self
        hidden: Names = dict.fromkeys(names, (UNKNOWN,))
        return Scope(self.module, self, self.body, self.qualname, self.cls, self.function, hidden)


@dataclass(slots=True, eq=False)
class SourceClass:
    """One `class` statement. Where a condition chooses between two of one name, each is a
    class of its own."""

    node: ast.ClassDef
    scope: Scope
    body: Scope

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def dotted(self) -> str:
        return f"{self.scope.module.name}.{self.body.qualname}"

    @property
    def place(self) -> Place:
        return Place(self.scope.module.file.path, self.node.lineno)


@dataclass(eq=False)
class Module:
    """One parsed file; `scopes` are its own, and those of its classes and functions."""

    file: SourceFile
    tree: ast.Module
    scope: Scope = field(init=False)
    classes: dict[ast.ClassDef, SourceClass] = field(default_factory=dict)
    scopes: list[Scope] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scope = Scope(self, None, self.tree.body)
        self._enter(self.scope)

    @property
    def name(self) -> str:
        return self.file.module

    @property
    def package(self) -> str:
        return self.name if self.file.is_package else self.name.rpartition(".")[0]

    @cached_property
    def shared(self) -> frozenset[str]:
        """The names that functions declare to be global."""
        nodes = ast.walk(self.tree) if b"global " in self.file.data else ()
        return frozenset(n for node in nodes if isinstance(node, ast.Global) for n in node.names)

    def release(self) -> None:
        """Break every cycle: the trees are freed at once, and need not be collected."""
        for scope in self.scopes:
            scope.body, scope.cls, scope.function, scope._names = (), None, None, None
        vars(self).clear()

    def lines_with(self, words: Collection[str]) -> list[int]:
        """The numbers of the lines in which one of `words` stands, perhaps as a part."""
        text, found = self.file.data, set[int]()
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        for word in words:
            line, seen, at = 1, 0, text.find(word.encode())
            while at >= 0:
                line += text.count(b"\n", seen, at)
                found.add(line)
                seen, at = at, text.find(word.encode(), at + 1)
        return sorted(found)

    def statements_with(self, words: Collection[str]) -> Iterator[tuple[Scope, ast.stmt]]:
        """The statements on whose lines one of `words` stands, each with its scope; those of
        inner scopes are parts of their definition's statement too."""
        lines = self.lines_with(words)
        for scope in self.scopes:
            for statement in scope.body:
                if stands_on(statement, lines):
                    yield scope, statement

    def _enter(self, scope: Scope) -> None:
        self.scopes.append(scope)
        for node in definitions(scope.body):
            name = _qualname(scope, node.name)
            if isinstance(node, ast.ClassDef):
                inner = Scope(self, scope, node.body, name)
                inner.cls = self.classes[node] = SourceClass(node, scope, inner)
            else:
                around = _seen_by_functions(scope)
                inner = Scope(self, around, node.body, f"{name}.<locals>", scope.cls, node)
                inner.is_method = scope.is_class
            self._enter(inner)


def definitions(body: Sequence[ast.stmt]) -> Iterator[ast.ClassDef | Function]:
    """The classes and functions among these statements, also inside conditions and loops."""
    for statement in body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement
        else:
            for block in blocks(statement):
                yield from definitions(block)


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def every_argument(function: Function) -> Iterator[ast.arg]:
    arguments = function.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (a for a in (arguments.vararg, arguments.kwarg) if a is not None)


def _seen_by_functions(scope: Scope) -> Scope:
    """The names of a class body are not seen by its methods."""
    while scope.is_class and scope.parent:
        scope = scope.parent
    return scope


def stands_on(statement: ast.stmt, lines: Sequence[int]) -> bool:
    """Whether a statement, its decorators included, has one of these sorted lines."""
    first = statement.lineno
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        first = min(node.lineno for node in (statement, *statement.decorator_list))
    at = bisect_left(lines, first)
    return at < len(lines) and lines[at] <= (statement.end_lineno or 0)


def _qualname(scope: Scope, name: str) -> str:
    return f"{scope.qualname}.{name}" if scope.qualname else name
