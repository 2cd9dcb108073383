"""What each name of a scope may stand for, after its statements."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Imported:
    """A module, or `name` of a module; `*` for all that it has."""

    module: str
    name: str = ""


Function = ast.FunctionDef | ast.AsyncFunctionDef
Bound = ast.ClassDef | Function | ast.AnnAssign | ast.arg | ast.expr | Imported
Names = dict[str, tuple[Bound, ...]]
"""Every definition that may hold: more than one where it depends on a condition."""


def bind(body: Sequence[ast.stmt], package: str, names: Names | None = None) -> Names:
    """What `body`, executed after `names`, binds. `package` is what relative imports start
    from. Both branches of a condition count; a later definition replaces earlier ones."""
    names = dict(names or {})
    for statement in body:
        names = _bind_one(statement, package, names)
    return names


def _bind_one(statement: ast.stmt, package: str, names: Names) -> Names:
    match statement:
        case ast.ClassDef(name=name):
            return names | {name: (statement,)}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return names if _adds_to_another(statement) else names | {name: (statement,)}
        case ast.Import(names=aliases):
            return names | {
                a.asname or a.name.partition(".")[0]: (
                    Imported(a.name if a.asname else a.name.partition(".")[0]),
                )
                for a in aliases
            }
        case ast.ImportFrom():
            return _bind_from(statement, package, names)
        case ast.Assign(targets=targets, value=value):
            return names | {n: (v,) for t in targets for n, v in _pairs(t, value)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return names | {name: (statement,)}
    return _bind_blocks(statement, package, names)


def _bind_blocks(statement: ast.stmt, package: str, names: Names) -> Names:
    match statement:
        case ast.If(body=body, orelse=orelse):
            return _merge(bind(body, package, names), bind(orelse, package, names))
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return bind(body, package, names)
        case ast.For(body=body, orelse=orelse) | ast.AsyncFor(body=body, orelse=orelse):
            return bind(orelse, package, _merge(names, bind(body, package, names)))
        case ast.While(body=body, orelse=orelse):
            return bind(orelse, package, _merge(names, bind(body, package, names)))
        case ast.Match(cases=cases):
            return _merge(names, *(bind(case.body, package, names) for case in cases))
        case ast.Try() | ast.TryStar():
            tried = bind(statement.body, package, names)
            after = [bind(h.body, package, _merge(names, tried)) for h in statement.handlers]
            ends = _merge(bind(statement.orelse, package, tried), *after)
            return bind(statement.finalbody, package, ends)
    return names


def _bind_from(statement: ast.ImportFrom, package: str, names: Names) -> Names:
    module = statement.module or ""
    if statement.level:
        above = package.split(".")[: len(package.split(".")) - statement.level + 1]
        module = ".".join([*above, *([module] if module else [])])
    for alias in statement.names:
        imported = Imported(module, alias.name)
        if alias.name == "*":
            names = names | {"*": (*names.get("*", ()), imported)}
        else:
            names = names | {alias.asname or alias.name: (imported,)}
    return names


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    match target, value:
        case ast.Name(id=name), _:
            return [(name, value)]
        case ast.Tuple(elts=left) | ast.List(elts=left), ast.Tuple(elts=right) | ast.List(
            elts=right
        ) if len(left) == len(right):
            return [pair for t, v in zip(left, right, strict=True) for pair in _pairs(t, v)]
        case ast.Tuple(elts=left) | ast.List(elts=left), _:
            unknown = ast.Call(func=value, args=[], keywords=[])
            return [pair for t in left for pair in _pairs(t, unknown)]
    return []


def _adds_to_another(function: Function) -> bool:
    """Whether it is an overload, or a setter or the like of an earlier definition."""
    return any(
        last_name(decorator) in ("overload", "setter", "deleter", "getter", "register")
        for decorator in function.decorator_list
    )


def last_name(expression: ast.expr) -> str:
    """`c` of `a.b.c`, `c()` or `a.b.c(...)`; "" of anything else."""
    match expression:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return last_name(function)
    return ""


def _merge(*every: Names) -> Names:
    merged: Names = {}
    for names in every:
        for name, bound in names.items():
            known = merged.get(name, ())
            merged[name] = (*known, *(b for b in bound if not any(b is k for k in known)))
    return merged
