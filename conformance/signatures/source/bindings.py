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


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that a statement yields: an element, what a context manager returns."""


UNKNOWN = Unknown()
Function = ast.FunctionDef | ast.AsyncFunctionDef
Bound = ast.ClassDef | Function | ast.AnnAssign | ast.arg | ast.expr | Imported | Unknown
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
            return names if _adds_to(statement, names) else names | {name: (statement,)}
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
            return names | {n: (v,) for t in targets for n, v in _named_pairs(t, value)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return names | {name: (statement,)}
        case ast.AugAssign(target=ast.Name(id=name)):
            return names | {name: (*names.get(name, ()), UNKNOWN)}
    return _bind_blocks(statement, package, names)


def _bind_blocks(statement: ast.stmt, package: str, names: Names) -> Names:
    match statement:
        case ast.If(body=body, orelse=orelse):
            return _merge(bind(body, package, names), bind(orelse, package, names))
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return bind(body, package, _opened(statement, names))
        case ast.For(target=target) | ast.AsyncFor(target=target):
            inside = _merge(names, dict.fromkeys(_targets(target), (UNKNOWN,)))
            after = _merge(inside, bind(statement.body, package, inside))
            return bind(statement.orelse, package, after)
        case ast.While(body=body, orelse=orelse):
            return bind(orelse, package, _merge(names, bind(body, package, names)))
        case ast.Match(cases=cases):
            return _merge(names, *(bind(c.body, package, captured(c, names)) for c in cases))
        case ast.Try() | ast.TryStar():
            tried = bind(statement.body, package, names)
            caught = [bind(h.body, package, _merge(names, tried)) for h in statement.handlers]
            ends = _merge(bind(statement.orelse, package, tried), *caught)
            return bind(statement.finalbody, package, ends)
    return names


def bind_until(line: int, body: Sequence[ast.stmt], package: str, names: Names) -> Names:
    """What names stand for where a line of `body` begins to be executed: the statement on it
    has not bound anything yet, but a loop around it may have run before."""
    for statement in body:
        if (statement.end_lineno or 0) < line:
            names = _bind_one(statement, package, names)
        elif statement.lineno <= line:
            return _bind_into(line, statement, package, names)
        else:
            break
    return names


def _bind_into(line: int, statement: ast.stmt, package: str, names: Names) -> Names:
    match statement:
        case ast.For() | ast.AsyncFor() | ast.While():
            names = _bind_blocks(statement, package, names)
        case ast.With() | ast.AsyncWith():
            names = _opened(statement, names)
        case ast.Match(cases=cases):
            for case in cases:
                if _has(case.body, line):
                    return bind_until(line, case.body, package, captured(case, names))
            return names
        case ast.Try() | ast.TryStar() if not _has(statement.body, line):
            names = _merge(names, bind(statement.body, package, names))
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(statement, "handlers", [])]
    is_scope = isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    for block in [] if is_scope else blocks:
        if isinstance(block, list) and _has(block, line):
            return bind_until(line, block, package, names)
    return names


def _has(body: Sequence[ast.stmt], line: int) -> bool:
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or 0)


def captured(case: ast.match_case, names: Names) -> Names:
    """The names after the pattern of a case has matched."""
    found = [getattr(node, "name", None) for node in ast.walk(case.pattern)]
    found += [getattr(node, "rest", None) for node in ast.walk(case.pattern)]
    return names | dict.fromkeys([name for name in found if name], (UNKNOWN,))


def _opened(statement: ast.With | ast.AsyncWith, names: Names) -> Names:
    targets = [n for i in statement.items if i.optional_vars for n in _targets(i.optional_vars)]
    return names | dict.fromkeys(targets, (UNKNOWN,))


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


def _named_pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr | Unknown]]:
    return [(t.id, v) for t, v in pairs(target, value) if isinstance(t, ast.Name)]


def pairs(target: ast.expr, value: ast.expr | Unknown) -> list[tuple[ast.expr, ast.expr | Unknown]]:
    """Each target of an assignment with its value, those in tuples and lists too."""
    if not isinstance(target, ast.Tuple | ast.List):
        return [(target, value)]
    values: list[ast.expr | Unknown] = [UNKNOWN] * len(target.elts)
    if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
        values = list(value.elts)
    return [p for t, v in zip(target.elts, values, strict=True) for p in pairs(t, v)]


def _targets(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]


def _adds_to(function: Function, names: Names) -> bool:
    """Whether it is an overload, or a setter or the like of an earlier definition."""
    for decorator in function.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        match call:
            case ast.Name("overload") | ast.Attribute(attr="overload"):
                return True
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in names:
                if attribute in ("setter", "deleter", "getter", "register"):
                    return True
    return False


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
