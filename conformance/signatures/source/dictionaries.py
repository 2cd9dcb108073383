"""The keys of a dictionary behind `**`, as far as its function tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from conformance.signatures.source.bindings import Bound
from conformance.signatures.source.modules import Scope


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys that are always there, and some that may be. `is_open` where others may be added
    out of sight, `is_rest` where all is added to what the function's own `**` collects."""

    always: tuple[str, ...] = ()
    sometimes: tuple[str, ...] = ()
    is_open: bool = False
    is_rest: bool = False

    def joined(self, other: Keys) -> Keys:
        """The keys of both."""
        return Keys(
            (*self.always, *other.always),
            (*self.sometimes, *other.sometimes),
            self.is_open or other.is_open,
            self.is_rest or other.is_rest,
        )

    def or_else(self, other: Keys) -> Keys:
        """The keys of one of both."""
        both = tuple(k for k in self.always if k in other.always)
        every = (*self.always, *other.always, *self.sometimes, *other.sometimes)
        some = tuple(k for k in dict.fromkeys(every) if k not in both)
        return Keys(both, some, self.is_open or other.is_open, self.is_rest or other.is_rest)


OPEN = Keys(is_open=True)


def keys_of(value: ast.expr | None, scope: Scope, seen: frozenset[str] = frozenset()) -> Keys:
    """The keys of `value`, an expression in `scope`."""
    match value:
        case ast.Dict(keys=keys, values=values):
            return _of_display(keys, values, scope, seen)
        case ast.Call(func=ast.Name(id="dict"), args=arguments, keywords=keywords):
            found = Keys(tuple(k.arg for k in keywords if k.arg))
            inner = [*arguments, *(k.value for k in keywords if k.arg is None)]
            for part in inner:
                found = found.joined(keys_of(part, scope, seen))
            return found
        case ast.IfExp(body=one, orelse=other):
            return keys_of(one, scope, seen).or_else(keys_of(other, scope, seen))
        case ast.BoolOp(values=[first, *others]):
            found = keys_of(first, scope, seen)
            for part in others:
                found = found.or_else(keys_of(part, scope, seen))
            return found
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return keys_of(left, scope, seen).joined(keys_of(right, scope, seen))
        case ast.Name(id=name) if scope.function is not None and name in scope.names:
            return OPEN if name in seen else _of_variable(name, scope, seen | {name})
    return OPEN


def _of_display(
    keys: list[ast.expr | None], values: list[ast.expr], scope: Scope, seen: frozenset[str]
) -> Keys:
    found = Keys()
    for key, value in zip(keys, values, strict=True):
        if key is None:
            found = found.joined(keys_of(value, scope, seen))
        else:
            name = _constant(key)
            found = found.joined(Keys((name,)) if name is not None else OPEN)
    return found


def _of_variable(name: str, scope: Scope, seen: frozenset[str]) -> Keys:
    """Of every value that the variable is given, and of what is added to it."""
    found: Keys | None = None
    for bound in scope.names[name]:
        keys = _of_bound(bound, scope, seen)
        found = keys if found is None else found.or_else(keys)
    found = found or OPEN
    for statement in scope.body:
        for use in _uses(statement, name):
            found = found.joined(_added(use, scope, seen))
    return replace(found, sometimes=tuple(k for k in found.sometimes if k not in found.always))


def _of_bound(bound: Bound, scope: Scope, seen: frozenset[str]) -> Keys:
    match bound:
        case ast.arg():
            rest = scope.function.args.kwarg if scope.function else None
            return Keys(is_rest=True) if rest is bound else OPEN
        case ast.AnnAssign(value=value):
            return keys_of(value, scope, seen)
        case ast.expr():
            return keys_of(bound, scope, seen)
    return OPEN


def _uses(node: ast.AST, name: str) -> Iterator[ast.AST]:
    """The smallest expressions around each use of a variable that tell what is done to it."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=there)) as target], value=value):
            if there == name:
                yield target
                yield from _uses(value, name)
                return
        case ast.AugAssign(target=ast.Name(id=there)) if there == name:
            yield node
            return
        case ast.Call(func=ast.Attribute(value=ast.Name(id=there)), args=arguments):
            if there == name:
                yield node
                for argument in arguments:
                    yield from _uses(argument, name)
                return
        case ast.Assign(targets=[ast.Name(id=there)]) | ast.AnnAssign(target=ast.Name(id=there)):
            if there == name:
                return
        case (
            ast.keyword(arg=None, value=ast.Name(id=there))
            | ast.Compare(comparators=[ast.Name(id=there)])
        ):
            if there == name:
                return
        case ast.Subscript(value=ast.Name(id=there), ctx=ast.Load()) if there == name:
            return
        case ast.If(test=ast.Name(id=there)) if there == name:
            for part in (*node.body, *node.orelse):
                yield from _uses(part, name)
            return
        case ast.Name(id=there, ctx=ast.Load()) if there == name:
            yield node
            return
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, name)


_READS = ("get", "keys", "values", "items", "copy", "pop")


def _added(use: ast.AST, scope: Scope, seen: frozenset[str]) -> Keys:
    match use:
        case ast.Subscript(slice=key):
            name = _constant(key)
            return Keys(sometimes=(name,)) if name is not None else OPEN
        case ast.AugAssign(op=ast.BitOr(), value=value):
            return _perhaps(keys_of(value, scope, seen))
        case ast.Call(func=ast.Attribute(attr="update"), args=arguments, keywords=keywords):
            found = Keys(sometimes=tuple(k.arg for k in keywords if k.arg))
            for part in (*arguments, *(k.value for k in keywords if k.arg is None)):
                found = found.joined(_perhaps(keys_of(part, scope, seen)))
            return found
        case ast.Call(func=ast.Attribute(attr="setdefault"), args=[key, *_]):
            name = _constant(key)
            return Keys(sometimes=(name,)) if name is not None else OPEN
        case ast.Call(func=ast.Attribute(attr=method)) if method in _READS:
            return Keys()
    return OPEN


def _perhaps(keys: Keys) -> Keys:
    return replace(keys, always=(), sometimes=(*keys.always, *keys.sometimes))


def _constant(key: ast.expr) -> str | None:
    return str(key.value) if isinstance(key, ast.Constant) else None
