"""Sub-pools that only the pools which own them can reach."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from conformance.signatures.source.bindings import last_name
from conformance.signatures.source.hierarchy import Hierarchy
from conformance.signatures.source.modules import Modules
from conformance.signatures.source.scopes import Module, Scope, SourceClass
from conformance.signatures.source.sites import defaults


def owners_of(cls: SourceClass, modules: Modules, hierarchy: Hierarchy) -> set[SourceClass]:
    """The members of the family that make `cls`, or a class below it, with their bases and
    what derives from them; empty where one of these is made elsewhere too, or `cls` nowhere.

    A class is made where it is used as a value: not as a base, in an annotation, in
    `isinstance`, or for an attribute of the class.
    """
    makers: set[SourceClass] = set()
    for made in hierarchy.below(cls):
        for user in _users(made, modules, hierarchy):
            if user is None or not hierarchy.judges(user):
                return set()
            makers.add(user)
    above = {c for maker in makers for line in hierarchy.lines(maker) for c in line}
    below = {c for maker in makers for c in hierarchy.below(maker)}
    return (above | below) - set(hierarchy.roots) - {cls}


def _users(
    cls: SourceClass, modules: Modules, hierarchy: Hierarchy
) -> Iterator[SourceClass | None]:
    """The class in which each use of `cls` stands, None outside of classes."""
    names = _names_of(cls, modules)
    for file in modules.mentioning(names):
        module = modules.parse(file)
        for scope, statement in module.statements_with(names) if module else ():
            uses = _uses(statement, names) if scope.cls is not cls else ()
            if any(_is(use, cls, scope, hierarchy) for use in uses):
                yield scope.cls


def _names_of(cls: SourceClass, modules: Modules) -> set[str]:
    """The name of a class, and those under which it is imported."""
    names, new = set[str](), {cls.name}
    while new:
        names |= new
        parsed = [modules.parse(file) for file in modules.mentioning(new)]
        new = {n for module in parsed if module for n in _renamed(module, new)} - names
    return names


def _renamed(module: Module, names: set[str]) -> Iterator[str]:
    if any(f"{name} as ".encode() in module.file.data for name in names):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                yield from (a.asname for a in node.names if a.name in names and a.asname)


def _is(use: ast.expr, cls: SourceClass, scope: Scope, hierarchy: Hierarchy) -> bool:
    """Whether the expression is `cls`, as far as source tells."""
    found, unsure = hierarchy.resolver.classes(use, scope)
    return cls in found or (unsure and not found)


_ASKS = ("isinstance", "issubclass", "cast", "TypeVar", "super")


def _uses(node: ast.AST, names: set[str]) -> Iterator[ast.expr]:
    match node:
        case ast.ClassDef():
            inside: list[ast.AST | None] = [*node.decorator_list]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            inside = [*node.decorator_list, *defaults(node.args)]
        case ast.AnnAssign(value=value):
            inside = [value]
        case ast.Call(func=function) if last_name(function) in _ASKS:
            inside = []
        case ast.Call(func=ast.Attribute(value=value, attr=attribute)) if _named(value, names):
            inside = [*node.args, *(k.value for k in node.keywords)]
            if not attribute.startswith("__"):
                yield value
        case ast.Attribute(value=value) if _named(value, names):
            inside = []
        case ast.Name() | ast.Attribute() if _named(node, names):
            yield node
            return
        case _:
            inside = list(ast.iter_child_nodes(node))
    for child in inside:
        if child is not None:
            yield from _uses(child, names)


def _named(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.Name(id=there) | ast.Attribute(attr=there):
            return there in names
    return False
