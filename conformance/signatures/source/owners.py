"""Sub-pools that only the pools which own them can reach."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.signatures.source.bindings import last_name
from conformance.signatures.source.hierarchy import Hierarchy
from conformance.signatures.source.kinds import attribute_of_self
from conformance.signatures.source.modules import Modules
from conformance.signatures.source.scopes import Module, Scope, SourceClass
from conformance.signatures.source.sites import defaults


@dataclass(frozen=True, slots=True)
class Owners:
    """The classes that make and hold a sub-pool, and the attributes in which they hold it."""

    classes: frozenset[SourceClass] = frozenset()
    attributes: frozenset[str] = frozenset()


NOBODY = Owners()


def owners_of(cls: SourceClass, modules: Modules, hierarchy: Hierarchy) -> Owners:
    """The members of the family that make `cls`, or a class below it, with their bases and
    what derives from them; nobody where one of these is made elsewhere too, or handed out,
    or `cls` is made nowhere.

    A class is made where it is used as a value: not as a base, in an annotation, in
    `isinstance`, or for an attribute of the class.
    """
    makers: set[SourceClass] = set()
    attributes: set[str] = set()
    for made in hierarchy.below(cls):
        for scope, statement in _made_in(made, modules, hierarchy):
            user = scope.cls
            if user is None or not hierarchy.judges(user) or _hands_out(scope, statement):
                return NOBODY
            makers.add(user)
            attributes.update(_held_in(scope, statement))
    above = {c for maker in makers for line in hierarchy.lines(maker) for c in line}
    below = {c for maker in makers for c in hierarchy.below(maker)}
    owners = (above | below) - set(hierarchy.roots) - {cls}
    return Owners(frozenset(owners), frozenset(attributes))


def _made_in(
    cls: SourceClass, modules: Modules, hierarchy: Hierarchy
) -> Iterator[tuple[Scope, ast.stmt]]:
    """Each statement that uses `cls` as a value, but its own, with its scope."""
    names = _names_of(cls, modules)
    for file in modules.mentioning(names):
        module = modules.parse(file)
        for scope, statement in module.statements_with(names) if module else ():
            uses = _uses(statement, names) if scope.cls is not cls else ()
            if any(_is(use, cls, scope, hierarchy) for use in uses):
                yield scope, statement


def _hands_out(scope: Scope, statement: ast.stmt) -> bool:
    """Whether others may get what is made here: it is returned, or made without an instance."""
    without_self = scope.function is not None and scope.is_method and not scope.first
    returned = (n for n in ast.walk(statement) if isinstance(n, ast.Return | ast.Yield))
    return without_self or any(node.value is not None for node in returned)


def _held_in(scope: Scope, statement: ast.stmt) -> Iterator[str]:
    """The attributes of `self` that a statement assigns to."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from filter(None, [attribute_of_self(node, scope)])


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
