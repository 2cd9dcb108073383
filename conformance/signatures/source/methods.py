"""The members of a family read from source: which method each verb of a class is."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from inspect import Signature

from conformance.signatures.findings import Place
from conformance.signatures.members import Member, Method
from conformance.signatures.source.bindings import Bound, Function, last_name
from conformance.signatures.source.dataclass_init import init_of, makes_init
from conformance.signatures.source.hierarchy import Hierarchy, is_abstract_base
from conformance.signatures.source.parameters import is_property, of_arguments, signature_of
from conformance.signatures.source.scopes import Scope, SourceClass


@dataclass(frozen=True, slots=True)
class Definition:
    """What a class body binds a verb to; `owner` is the class with that body."""

    owner: SourceClass
    bound: Bound

    @property
    def place(self) -> Place:
        line = getattr(self.bound, "lineno", self.owner.node.lineno)
        return Place(self.owner.scope.module.file.path, line)


@dataclass(slots=True, eq=False)
class Methods:
    """Looks methods up in a hierarchy."""

    hierarchy: Hierarchy
    _found: dict[tuple[SourceClass, str], list[Definition]] = field(default_factory=dict)

    def member(self, cls: SourceClass, verbs: Sequence[str]) -> Member:
        methods = {verb: tuple(self._methods(cls, verb)) for verb in verbs}
        found = {verb: every for verb, every in methods.items() if every}
        return Member(cls.dotted, found, cls.place, self.is_abstract(cls))

    def definitions(self, cls: SourceClass, verb: str) -> list[Definition]:
        """Where Python would find `verb`: in several places where a condition chooses."""
        if (cls, verb) not in self._found:
            every = [d for line in self.hierarchy.lines(cls) for d in first_in(line, verb)]
            self._found[cls, verb] = list(dict.fromkeys(every))
        return self._found[cls, verb]

    def is_abstract(self, cls: SourceClass) -> bool:
        """Whether a method is left abstract, and `abc` sees to it."""
        (line, *_) = self.hierarchy.lines(cls)
        if not any(is_abstract_base(c) for c in line):
            return False
        names = {n for c in line for n, bound in c.body.names.items() if _is_abstract(bound)}
        return any(_is_abstract([d.bound for d in first_in(line, n)]) for n in names)

    def function(self, definition: Definition) -> Function | None:
        """The function behind a definition, also where a name stands for it."""
        return _function(definition.bound, definition.owner.body)

    def scope(self, definition: Definition) -> Scope | None:
        """The scope of that function."""
        function, module = self.function(definition), definition.owner.scope.module
        return next((s for s in module.scopes if s.function is function), None)

    def _methods(self, cls: SourceClass, verb: str) -> Iterator[Method]:
        elsewhere = {
            definition
            for line in self.hierarchy.lines(cls)
            for base in line[1:]
            if self.hierarchy.judges(base)
            for definition in self.definitions(base, verb)
        }
        for definition in self.definitions(cls, verb):
            yield self._method(definition, inherited=definition in elsewhere)

    def _method(self, definition: Definition, *, inherited: bool) -> Method:
        function = self.function(definition)
        try:
            signature, problem = self._signature(definition, function)
        except ValueError:  # two parameters of one name, or fields in a wrong order
            signature, problem = None, ""
        stub = function is not None and only_raises(function)
        owner = definition.owner.dotted
        return Method(signature, owner, definition.place, problem, stub, inherited)

    def _signature(
        self, definition: Definition, function: Function | None
    ) -> tuple[Signature | None, str]:
        bound = definition.bound
        match bound.value if isinstance(bound, ast.AnnAssign) else bound:
            case ast.ClassDef() as node if node is definition.owner.node:
                (line, *_) = self.hierarchy.lines(definition.owner)
                return init_of(line), ""
            case ast.Constant(value=value):
                return None, f"is {value!r}, not a method"
            case ast.Lambda(args=arguments):
                return of_arguments(arguments, bound=True), ""
        if function is None:
            return None, ""
        if is_property(function):
            return None, "is a property, not a method"
        return signature_of(function), ""


def first_in(line: Sequence[SourceClass], verb: str) -> list[Definition]:
    """The definitions of `verb` in the first class that has one. That of an `__init__` which
    `dataclass` makes is the class itself."""
    for cls in line:
        bound = [b for b in cls.body.names.get(verb, ()) if not _is_bare(b)]
        if bound:
            return [Definition(cls, b) for b in bound]
        if verb == "__init__" and makes_init(cls):
            return [Definition(cls, cls.node)]
    return []


def _is_bare(bound: Bound) -> bool:
    """Whether it only annotates."""
    return isinstance(bound, ast.AnnAssign) and bound.value is None


def only_raises(function: Function) -> bool:
    """Whether the body is `raise NotImplementedError`, a docstring apart."""
    body = [s for s in function.body if not _is_text(s)]
    match body:
        case [ast.Raise(exc=ast.expr() as error)]:
            return last_name(error) == "NotImplementedError"
    return False


def _function(bound: Bound, scope: Scope | None) -> Function | None:
    seen = set()
    while isinstance(bound, ast.Name | ast.AnnAssign) and id(bound) not in seen:
        seen.add(id(bound))
        name = bound.value if isinstance(bound, ast.AnnAssign) else bound
        while scope and not (isinstance(name, ast.Name) and name.id in scope.names):
            scope = scope.parent
        if scope is None or not isinstance(name, ast.Name):
            return None
        bound = next((b for b in scope.names[name.id] if b is not bound), bound)
    return bound if isinstance(bound, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_abstract(every: Sequence[Bound]) -> bool:
    return any(
        last_name(decorator) in ("abstractmethod", "abstractproperty")
        for bound in every
        if isinstance(bound, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in bound.decorator_list
    )
