"""Whose method a call reaches: the class of its receiver, as far as source tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from conformance.signatures.source.bindings import Bound, last_name
from conformance.signatures.source.methods import Methods, first_in
from conformance.signatures.source.modules import Scope, SourceClass, every_argument
from conformance.signatures.source.resolve import Resolver


@dataclass(frozen=True, slots=True)
class Receiver:
    """See `Call`; `takes_self` is 1 where the instance is the first positional argument."""

    owners: frozenset[str] | None = None
    instances: frozenset[str] = frozenset()
    binds_on: frozenset[str] = frozenset()
    is_sure: bool = False
    attribute: str = ""
    takes_self: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """An instance of `cls`, or also of a class that derives from it where it is not exact.
    It is sure where no annotation had to be believed."""

    cls: SourceClass
    is_exact: bool = False
    is_sure: bool = True


Kinds = Sequence[Kind] | None
"""What an expression may be an instance of; None where that is not known."""


@dataclass(slots=True, eq=False)
class Receivers:
    """Infers receivers from constructors, annotations, `self` and `super()`."""

    resolver: Resolver
    methods: Methods
    _attributes: dict[tuple[SourceClass, str], Kinds] = field(default_factory=dict)

    def of(self, expression: ast.expr, scope: Scope, verb: str) -> Receiver:
        """The receiver `expression` of a call of `verb` in `scope`."""
        if isinstance(expression, ast.Call) and last_name(expression) == "super" and scope.cls:
            return self._super(scope.cls, verb)
        classes, _ = self.resolver.classes(expression, scope)
        if classes:
            return self._unbound(classes, verb)
        attribute = _attribute_of_self(expression, scope)
        kinds = self._kinds(expression, scope)
        if kinds is None or _is_asked_for(expression, scope):
            return Receiver(attribute=attribute)
        return self._bound(kinds, verb, attribute)

    def _super(self, cls: SourceClass, verb: str) -> Receiver:
        lines = [
            line[line.index(cls) + 1 :]
            for member in (cls, *self.methods.hierarchy.below(cls))
            for line in self.methods.hierarchy.lines(member)
        ]
        owners = frozenset(d.owner.dotted for line in lines for d in first_in(line, verb))
        own = frozenset(d.owner.dotted for d in first_in(lines[0], verb))
        return Receiver(owners, binds_on=own, is_sure=True)

    def _unbound(self, classes: Sequence[SourceClass], verb: str) -> Receiver:
        found = [d for cls in classes for d in self.methods.definitions(cls, verb)]
        owners = frozenset(d.owner.dotted for d in found)
        names = frozenset(cls.dotted for cls in classes)
        return Receiver(owners, names, owners, is_sure=True, takes_self=1)

    def _bound(self, kinds: Sequence[Kind], verb: str, attribute: str) -> Receiver:
        every = list(dict.fromkeys(c for kind in kinds for c in self._instances(kind)))
        found = {c: self.methods.definitions(c, verb) for c in every}
        owners = frozenset(d.owner.dotted for c in every for d in found[c])
        sure = frozenset(d.owner.dotted for k in kinds for d in found[k.cls])
        is_sure = all(kind.is_sure for kind in kinds)
        names = frozenset(c.dotted for c in every)
        return Receiver(owners, names, sure, is_sure, attribute)

    def _instances(self, kind: Kind) -> Iterator[SourceClass]:
        yield kind.cls
        if not kind.is_exact:
            yield from self.methods.hierarchy.below(kind.cls)

    # -- kinds of expressions ----------------------------------------------------------

    def _kinds(self, expression: ast.expr, scope: Scope) -> Kinds:
        match expression:
            case ast.Call():
                classes, unsure = self.resolver.classes(expression.func, scope)
                return [Kind(c, is_exact=True) for c in classes] if classes and not unsure else None
            case ast.Name(id=name):
                return self._kinds_of_name(name, scope)
            case ast.Attribute(value=value, attr=name):
                owners = self._kinds(value, scope)
                return _joined([self._kinds_of_attribute(k.cls, name) for k in owners or ()])
            case ast.IfExp(body=one, orelse=other):
                return _joined([self._kinds(one, scope), self._kinds(other, scope)])
            case ast.NamedExpr(value=value):
                return self._kinds(value, scope)
        return None

    def _kinds_of_name(self, name: str, scope: Scope) -> Kinds:
        if scope.cls and name == _self_of(scope):
            return [Kind(scope.cls)]
        at: Scope | None = scope
        while at is not None and name not in at.names:
            at = at.parent
        if at is None:
            return None
        return _joined([self._kinds_of_bound(bound, at) for bound in at.names[name]])

    def _kinds_of_bound(self, bound: Bound, scope: Scope) -> Kinds:
        match bound:
            case ast.arg(annotation=annotation):
                return self._annotated(annotation, scope)
            case ast.AnnAssign(annotation=annotation):
                return self._annotated(annotation, scope)
            case ast.Name() | ast.Attribute() | ast.Call() | ast.IfExp():
                return self._kinds(bound, scope)
            case ast.Constant(value=None):
                return []
        return None

    def _kinds_of_attribute(self, cls: SourceClass, name: str) -> Kinds:
        key = (cls, name)
        if key not in self._attributes:
            self._attributes[key] = None  # for an attribute that is assigned from itself
            (line, *_) = self.methods.hierarchy.lines(cls)
            found = [kinds for c in line for kinds in self._assigned(c, name)]
            self._attributes[key] = _joined(found)
        return self._attributes[key]

    def _assigned(self, cls: SourceClass, name: str) -> Iterator[Kinds]:
        """What each assignment to `self.name` in the methods of `cls` says."""
        for bound in cls.body.names.get(name, ()):
            if isinstance(bound, ast.AnnAssign):
                yield self._annotated(bound.annotation, cls.body)
        for scope in cls.scope.module.scopes:
            if scope.cls is cls and scope.function is not None:
                for node in (n for statement in scope.body for n in ast.walk(statement)):
                    match node:
                        case ast.AnnAssign(target=target, annotation=annotation):
                            if _is_self(target, name, scope):
                                yield self._annotated(annotation, scope)
                        case ast.Assign(targets=targets, value=value):
                            if any(_is_self(t, name, scope) for t in targets):
                                yield self._kinds_of_bound(value, scope)

    def _annotated(self, annotation: ast.expr | None, scope: Scope) -> Kinds:
        match annotation:
            case ast.Constant(value=str(text)):
                try:
                    return self._annotated(ast.parse(text, mode="eval").body, scope)
                except SyntaxError:
                    return None
            case ast.Constant(value=None):
                return []
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return _joined([self._annotated(left, scope), self._annotated(right, scope)])
            case ast.Subscript(value=value, slice=inner) if last_name(value) in (
                "Optional",
                "Union",
                "Annotated",
                "Final",
            ):
                parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                parts = parts[:1] if last_name(value) == "Annotated" else parts
                return _joined([self._annotated(part, scope) for part in parts])
            case ast.Name() | ast.Attribute():
                classes, unsure = self.resolver.classes(annotation, scope)
                return [Kind(c, is_sure=False) for c in classes] if classes and not unsure else None
        return None


def _joined(every: Sequence[Kinds]) -> Kinds:
    """Any of these; unknown where one of them is, or where there is none."""
    if not every or any(kinds is None for kinds in every):
        return None
    return list(dict.fromkeys(kind for kinds in every for kind in kinds or ())) or None


def _self_of(scope: Scope) -> str:
    if scope.function is None:
        return ""
    first = next(every_argument(scope.function), None)
    decorators = {last_name(d) for d in scope.function.decorator_list}
    return first.arg if first and not decorators & {"staticmethod", "classmethod"} else ""


def _is_self(target: ast.expr, name: str, scope: Scope) -> bool:
    match target:
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
            return owner == _self_of(scope) and attribute == name
    return False


def _attribute_of_self(expression: ast.expr, scope: Scope) -> str:
    if isinstance(expression, ast.Attribute) and _is_self(expression, expression.attr, scope):
        return expression.attr
    return ""


def _is_asked_for(expression: ast.expr, scope: Scope) -> bool:
    """Whether the function tests what the expression is: it may then be narrower than said."""
    text = ast.dump(expression)
    return any(
        isinstance(node, ast.Call)
        and last_name(node.func) in ("isinstance", "hasattr", "issubclass", "type", "signature")
        and any(text in ast.dump(argument) for argument in node.args)
        for statement in scope.body
        for node in ast.walk(statement)
    )
