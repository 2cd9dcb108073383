"""Parameters that an override accepts, and drops on the way to its parent."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature

from conformance.signatures.rules import takes_keyword
from conformance.signatures.source.bindings import Function, last_name
from conformance.signatures.source.dictionaries import keys_of
from conformance.signatures.source.facts import names_in
from conformance.signatures.source.hierarchy import Line
from conformance.signatures.source.methods import Definition, Methods, first_in
from conformance.signatures.source.parameters import default_of, signature_of
from conformance.signatures.source.scopes import Scope, SourceClass, every_argument


@dataclass(frozen=True, slots=True)
class Dropped:
    """A parameter of `definition` that its parent `parent` uses, and never sees."""

    verb: str
    parameter: str
    definition: Definition
    parent: Definition


@dataclass(frozen=True, slots=True)
class Parents:
    """The methods of one verb along a line of bases."""

    verb: str
    line: Line
    methods: Methods

    def of(self, definition: Definition) -> list[Definition]:
        """What `super()` reaches from a method."""
        at = self.line.index(definition.owner)
        return first_in(self.line[at + 1 :], self.verb)

    def calls(self, definition: Definition) -> list[ast.Call]:
        """The calls of the parent's method, the instance left out of their arguments."""
        function, scope = self.methods.function(definition), self.methods.scope(definition)
        if function is None or scope is None:
            return []
        return [call for node in _nodes(function) for call in self._call(node, scope)]

    def _call(self, node: ast.AST, scope: Scope) -> Iterator[ast.Call]:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name == self.verb:
                if isinstance(value, ast.Call):
                    if last_name(value) == "super":
                        yield node
                    return
                named, _ = self.methods.hierarchy.resolver.classes(value, scope)
                if any(cls in self.line for cls in named):
                    yield ast.Call(node.func, node.args[1:], node.keywords)


def dropped(cls: SourceClass, verbs: Sequence[str], methods: Methods) -> Iterator[Dropped]:
    """Every optional parameter that a method of `cls`, its own or that of a mixin, accepts,
    that the method of its parent which it calls uses, and that no such call passes on."""
    (line, *_) = methods.hierarchy.lines(cls)
    for verb in verbs:
        for definition in first_in(line, verb):
            judged = (base for base in line[1:] if methods.hierarchy.judges(base))
            if not any(definition in methods.definitions(base, verb) for base in judged):
                yield from _dropped(definition, Parents(verb, line, methods))


def _dropped(definition: Definition, parents: Parents) -> Iterator[Dropped]:
    function, scope = parents.methods.function(definition), parents.methods.scope(definition)
    calls = parents.calls(definition)
    if function is None or scope is None or not calls:
        return
    for parent in parents.of(definition):
        theirs = parents.methods.function(parent)
        signature = signature_of(theirs) if theirs else Signature()
        for name in _accepted(signature_of(function), signature):
            passed = any(_passes(call, name, signature, scope) for call in calls)
            if passed or _refuses(name, function) or not _uses(name, parent, parents):
                continue
            yield Dropped(parents.verb, name, definition, parent)


def _accepted(ours: Signature, theirs: Signature) -> Iterator[str]:
    """The optional parameters of both: our own, and those of the parent in our `**`."""
    for name, parameter in ours.parameters.items():
        if parameter.default is not Parameter.empty and takes_keyword(theirs, name):
            yield name
    if any(p.kind is Parameter.VAR_KEYWORD for p in ours.parameters.values()):
        for name, parameter in theirs.parameters.items():
            if parameter.default is not Parameter.empty and name not in ours.parameters:
                yield name


def _refuses(name: str, function: Function) -> bool:
    """Whether the method raises where the parameter is given."""
    return any(
        isinstance(node, ast.If)
        and name in names_in(node.test)
        and any(isinstance(statement, ast.Raise) for statement in node.body)
        for node in _nodes(function)
    )


def _passes(call: ast.Call, name: str, signature: Signature, scope: Scope) -> bool:
    """Whether the call hands `name` on, with more than its default. The rest that the
    function itself collects, in `*args` or `**kwargs`, holds what it does not name."""
    assert scope.function is not None
    arguments = scope.function.args
    own = name in {a.arg for a in every_argument(scope.function)}
    for starred in (a.value for a in call.args if isinstance(a, ast.Starred)):
        rest = arguments.vararg and _is_name(starred, arguments.vararg.arg)
        if not rest or (not own and arguments.kwarg is None):
            return True
    for value in (k.value for k in call.keywords if k.arg is None):
        keys = keys_of(value, scope)
        held = keys.is_rest and not own and name not in keys.taken
        if held or keys.is_open or name in (*keys.always, *keys.sometimes):
            return True
    plain = [a for a in call.args if not isinstance(a, ast.Starred)]
    by_place = dict(zip(_places(signature), plain, strict=False))
    given = by_place.get(name) or next((k.value for k in call.keywords if k.arg == name), None)
    return given is not None and not _is_default(given, signature.parameters.get(name))


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_default(given: ast.expr, parameter: Parameter | None) -> bool:
    """Whether a constant is passed that says no more than nothing would."""
    is_constant = isinstance(given, ast.Constant) and parameter is not None
    return is_constant and parameter is not None and default_of(given) == parameter.default


def _places(signature: Signature) -> list[str]:
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in signature.parameters.values() if p.kind in kinds]


def _uses(name: str, definition: Definition, parents: Parents) -> bool:
    """Whether the method does something with the parameter, if only by way of its parent."""
    function = parents.methods.function(definition)
    if function is None:
        return False
    calls = parents.calls(definition)
    parts = [part for call in calls for part in (*call.args, *call.keywords)]
    handed_on = {id(node) for part in parts for node in ast.walk(part)}
    own = name in signature_of(function).parameters
    named = [n for n in _nodes(function) if _is_use(n, name, function, own)]
    if any(id(node) not in handed_on for node in named):
        return True
    return bool(named) and any(_uses(name, parent, parents) for parent in parents.of(definition))


def _is_use(node: ast.AST, name: str, function: Function, own: bool) -> bool:
    """Whether a node reads the parameter, or the rest in which it is where it has no name."""
    match node:
        case ast.Name(id=there, ctx=ast.Load()):
            rest = function.args.kwarg
            return there == name if own else rest is not None and there == rest.arg
    return False


def _nodes(function: Function) -> Iterator[ast.AST]:
    for statement in function.body:
        yield from ast.walk(statement)
