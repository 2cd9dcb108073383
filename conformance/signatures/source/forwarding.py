"""Parameters that an override accepts, and drops on the way to its parent."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature

from conformance.signatures.rules import takes_keyword
from conformance.signatures.source.bindings import Function, last_name
from conformance.signatures.source.methods import Definition, Methods, first_in
from conformance.signatures.source.modules import SourceClass
from conformance.signatures.source.parameters import signature_of


@dataclass(frozen=True, slots=True)
class Dropped:
    """A parameter of `definition` that its parent `parent` uses, and never sees."""

    verb: str
    parameter: str
    definition: Definition
    parent: Definition


def dropped(cls: SourceClass, verbs: Sequence[str], methods: Methods) -> Iterator[Dropped]:
    """Every optional parameter that a method of `cls` accepts, that the method which it calls
    by `super()` uses, and that none of these calls passes on."""
    for verb in verbs:
        for definition in methods.definitions(cls, verb):
            function = methods.function(definition)
            if definition.owner is cls and function is not None:
                yield from _dropped(verb, definition, function, methods)


def _dropped(
    verb: str, definition: Definition, function: Function, methods: Methods
) -> Iterator[Dropped]:
    calls = list(_super_calls(function, verb))
    for parent in _parents(definition.owner, verb, methods) if calls else ():
        theirs = methods.function(parent)
        if theirs is None:
            continue
        signature = signature_of(theirs)
        for name, parameter in signature_of(function).parameters.items():
            optional = parameter.default is not Parameter.empty
            if not optional or not takes_keyword(signature, name):
                continue
            passed = any(_passes(call, name, signature, function) for call in calls)
            if not passed and _uses(name, verb, parent, methods, set()):
                yield Dropped(verb, name, definition, parent)


def _parents(cls: SourceClass, verb: str, methods: Methods) -> Iterator[Definition]:
    (line, *_) = methods.hierarchy.lines(cls)
    yield from first_in(line[1:], verb)


def _super_calls(function: Function, verb: str) -> Iterator[ast.Call]:
    for node in _nodes(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr=name)):
                if name == verb and last_name(inner) == "super":
                    yield node


def _passes(call: ast.Call, name: str, signature: Signature, function: Function) -> bool:
    """Whether the call hands `name` on. The rest that `function` itself collects, in `*args`
    or `**kwargs`, never holds a parameter that it names."""
    rest = {a.arg for a in (function.args.vararg, function.args.kwarg) if a is not None}
    unpacked = [a.value for a in call.args if isinstance(a, ast.Starred)]
    unpacked += [k.value for k in call.keywords if k.arg is None]
    if any(not isinstance(v, ast.Name) or v.id not in rest for v in unpacked):
        return True
    by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    places = [p.name for p in signature.parameters.values() if p.kind in by_place]
    plain = [a for a in call.args if not isinstance(a, ast.Starred)]
    return any(k.arg == name for k in call.keywords) or name in places[: len(plain)]


def _uses(
    name: str, verb: str, definition: Definition, methods: Methods, seen: set[Definition]
) -> bool:
    """Whether the method does something with the parameter, if only by way of its parent."""
    function = methods.function(definition)
    if function is None or definition in seen:
        return False
    seen.add(definition)
    handed_on = {
        id(node)
        for call in _super_calls(function, verb)
        for part in (*call.args, *call.keywords)
        for node in ast.walk(part)
    }
    named = [n for n in _nodes(function) if isinstance(n, ast.Name) and n.id == name]
    if any(id(node) not in handed_on for node in named):
        return True
    parents = _parents(definition.owner, verb, methods) if named else ()
    return any(_uses(name, verb, parent, methods, seen) for parent in parents)


def _nodes(function: Function) -> Iterator[ast.AST]:
    for statement in function.body:
        yield from ast.walk(statement)
