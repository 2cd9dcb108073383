"""The keys of a dictionary behind `**`, as far as its function tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from conformance.signatures.source.bindings import Bound
from conformance.signatures.source.facts import Fact, is_asked_for
from conformance.signatures.source.scopes import Scope


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys that are always there, and some that may be. `is_open` where others may be added
    out of sight, `is_rest` where all is added to what the function's own `**` collects, less
    what is `taken` out of it."""

    always: tuple[str, ...] = ()
    sometimes: tuple[str, ...] = ()
    is_open: bool = False
    is_rest: bool = False
    taken: tuple[str, ...] = ()

    def joined(self, other: Keys) -> Keys:
        """The keys of both."""
        return Keys(
            (*self.always, *other.always),
            (*self.sometimes, *other.sometimes),
            self.is_open or other.is_open,
            self.is_rest or other.is_rest,
            (*self.taken, *other.taken),
        )

    def or_else(self, other: Keys) -> Keys:
        """The keys of one of both."""
        both = tuple(k for k in self.always if k in other.always)
        every = (*self.always, *other.always, *self.sometimes, *other.sometimes)
        some = tuple(k for k in dict.fromkeys(every) if k not in both)
        return replace(self.joined(other), always=both, sometimes=some)


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
        case ast.Name(id=name) if name not in seen:
            at = scope.holder(name)
            if at is not None and at.function is not None and at.function is scope.function:
                return _of_variable(name, at, seen | {name})
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
    """Of every value that the variable is given, and of what is added to it; not the keys
    that are taken out somewhere."""
    found: Keys | None = None
    for bound in scope.names[name]:
        keys = _of_bound(bound, scope, seen)
        found = keys if found is None else found.or_else(keys)
    found = found or OPEN
    uses = [use for statement in scope.body for use in _uses(statement, name, ())]
    for use, facts in uses:
        found = found.joined(_added(use, facts, scope, seen))
    gone = tuple(key for use, _ in uses if (key := _taken(use)) is not None)
    always = tuple(k for k in found.always if k not in gone)
    sometimes = tuple(k for k in found.sometimes if k not in gone and k not in always)
    return replace(found, always=always, sometimes=sometimes, taken=(*found.taken, *gone))


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


def _uses(
    node: ast.AST, name: str, facts: tuple[Fact, ...]
) -> Iterator[tuple[ast.AST, tuple[Fact, ...]]]:
    """The smallest expressions around each use of a variable that tell what is done to it,
    each with the tests that it is made behind."""
    inside: list[ast.AST] = list(ast.iter_child_nodes(node))
    match node:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=there)) as target], value=value):
            if there == name:
                yield target, facts
                inside = [value]
        case ast.Subscript(value=ast.Name(id=there), ctx=ast.Del()) if there == name:
            yield node, facts
            inside = []
        case ast.AugAssign(target=ast.Name(id=there)) if there == name:
            yield node, facts
            inside = []
        case ast.Call(func=ast.Attribute(value=ast.Name(id=there)), args=arguments):
            if there == name:
                yield node, facts
                inside = [*arguments]
        case ast.Assign(targets=[ast.Name(id=there)]) | ast.AnnAssign(target=ast.Name(id=there)):
            inside = [] if there == name else inside
        case (
            ast.keyword(arg=None, value=ast.Name(id=there))
            | ast.Compare(comparators=[ast.Name(id=there)])
        ):
            inside = [] if there == name else inside
        case ast.Subscript(value=ast.Name(id=there), ctx=ast.Load()) if there == name:
            inside = []
        case ast.If(test=test, body=body, orelse=orelse):
            if not (isinstance(test, ast.Name) and test.id == name):
                yield from _uses(test, name, facts)
            for block, outcome in ((body, True), (orelse, False)):
                for statement in block:
                    yield from _uses(statement, name, (*facts, (test, outcome)))
            inside = []
        case ast.Name(id=there, ctx=ast.Load()) if there == name:
            yield node, facts
    for child in inside:
        yield from _uses(child, name, facts)


_READS = ("get", "keys", "values", "items", "copy", "pop")


def _added(use: ast.AST, facts: tuple[Fact, ...], scope: Scope, seen: frozenset[str]) -> Keys:
    """The keys that a use may add."""
    match use:
        case ast.Subscript(ctx=ast.Del()):
            return OPEN
        case (
            ast.Subscript(slice=key)
            | ast.Call(func=ast.Attribute(attr="setdefault"), args=[key, *_])
        ):
            name = _constant(key)
            known = name is not None and not is_asked_for(name, facts)
            return Keys(sometimes=(name,)) if known and name else OPEN
        case ast.AugAssign(op=ast.BitOr(), value=value):
            return _perhaps(keys_of(value, scope, seen))
        case ast.Call(func=ast.Attribute(attr="update"), args=arguments, keywords=keywords):
            found = Keys(sometimes=tuple(k.arg for k in keywords if k.arg))
            for part in (*arguments, *(k.value for k in keywords if k.arg is None)):
                found = found.joined(_perhaps(keys_of(part, scope, seen)))
            return found
        case ast.Call(func=ast.Attribute(attr=method)) if method in _READS:
            return Keys()
    return OPEN


def _taken(use: ast.AST) -> str | None:
    """The key that a use takes out."""
    match use:
        case (
            ast.Subscript(slice=key, ctx=ast.Del())
            | ast.Call(func=ast.Attribute(attr="pop"), args=[key, *_])
        ):
            return _constant(key)
    return None


def _perhaps(keys: Keys) -> Keys:
    return replace(keys, always=(), sometimes=(*keys.always, *keys.sometimes))


def _constant(key: ast.expr) -> str | None:
    return str(key.value) if isinstance(key, ast.Constant) else None
