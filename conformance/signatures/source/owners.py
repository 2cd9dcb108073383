"""Sub-pools that only the pools which own them can reach."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from conformance.signatures.source.bindings import last_name
from conformance.signatures.source.hierarchy import Hierarchy
from conformance.signatures.source.modules import Modules, SourceClass


def owners_of(cls: SourceClass, modules: Modules, hierarchy: Hierarchy) -> set[SourceClass]:
    """The members of the family that make `cls`, with their bases and what derives from them;
    empty where it is made elsewhere too, or nowhere.

    It is made where its name is used as a value: not as a base, in an annotation, in
    `isinstance`, or for an attribute of the class.
    """
    makers: set[SourceClass] = set()
    for file in modules.mentioning([cls.name]):
        module = modules.parse(file)
        for scope, statement in module.statements_with([cls.name]) if module else ():
            if any(True for _ in _uses(statement, cls.name)):
                if scope.cls is None or not hierarchy.judges(scope.cls) or scope.cls is cls:
                    return set()
                makers.add(scope.cls)
    above = {c for maker in makers for line in hierarchy.lines(maker) for c in line}
    below = {c for maker in makers for c in hierarchy.below(maker)}
    return (above | below) - set(hierarchy.roots) - {cls}


_ASKS = ("isinstance", "issubclass", "cast", "TypeVar")


def _uses(node: ast.AST, name: str) -> Iterator[ast.AST]:
    match node:
        case ast.ClassDef():
            inside: list[ast.AST | None] = [*node.decorator_list]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            inside = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]
        case ast.AnnAssign(value=value):
            inside = [value]
        case ast.Call(func=function) if last_name(function) in _ASKS:
            inside = []
        case ast.Call(func=ast.Attribute(value=value, attr=attribute)) if _names(value, name):
            inside = [*node.args, *(k.value for k in node.keywords)]
            if not attribute.startswith("__"):
                yield node
        case ast.Attribute(value=value) if _names(value, name):
            inside = []
        case ast.Name() | ast.Attribute() if _names(node, name):
            yield node
            return
        case _:
            inside = list(ast.iter_child_nodes(node))
    for child in inside:
        if child is not None:
            yield from _uses(child, name)


def _names(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Name(id=there) | ast.Attribute(attr=there):
            return there == name
    return False
