"""What an expression may be an instance of."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from conformance.signatures.source.bindings import Bound, last_name, pairs
from conformance.signatures.source.hierarchy import Hierarchy
from conformance.signatures.source.modules import Modules, has_word
from conformance.signatures.source.resolve import Resolver
from conformance.signatures.source.scopes import Module, Scope, SourceClass


@dataclass(frozen=True, slots=True)
class Kind:
    """An instance of `cls`, or also of a class that derives from it where it is not exact.
    It is sure where no annotation had to be believed."""

    cls: SourceClass
    is_exact: bool = False
    is_sure: bool = True


Kinds = Sequence[Kind] | None
"""What an expression may be an instance of; None where that is not known."""

_WRAPS = ("Optional", "Union", "Annotated", "Final", "ClassVar")


@dataclass(slots=True, eq=False)
class KindsOf:
    """Infers kinds from constructors, annotations, assignments and `self`."""

    modules: Modules
    resolver: Resolver
    hierarchy: Hierarchy
    _attributes: dict[tuple[SourceClass, str], Kinds] = field(default_factory=dict)
    _open: list[Bound] = field(default_factory=list)

    def of(self, expression: ast.expr, scope: Scope) -> Kinds:
        match expression:
            case ast.Call():
                classes, unsure = self.resolver.classes(expression.func, scope)
                exact = [Kind(c, is_exact=True) for c in classes]
                return None if unsure else self._plain(exact)
            case ast.Name(id=name):
                return self._of_name(name, scope, expression.lineno)
            case ast.Attribute(value=value, attr=name):
                owners = self.of(value, scope)
                return _joined([self._of_attribute(k.cls, name) for k in owners or ()])
            case ast.IfExp(body=one, orelse=other):
                return _joined([self.of(one, scope), self.of(other, scope)])
            case ast.NamedExpr(value=value):
                return self.of(value, scope)
        return None

    def _of_name(self, name: str, scope: Scope, line: int) -> Kinds:
        at = scope.holder(name)
        if at is None or (at.function is None and name in at.module.shared):
            return None
        if at.first == name and at.cls:
            return [Kind(at.cls)]
        bound = at.names[name]
        if at.function is not None and at.function is scope.function:
            bound = at.names_at(line).get(name, bound)
        return _joined([self._of_bound(b, at) for b in bound])

    def _of_bound(self, bound: Bound, scope: Scope) -> Kinds:
        if bound in self._open:
            return []  # made of itself: the other values tell
        self._open.append(bound)
        try:
            return self._follow(bound, scope)
        finally:
            self._open.pop()

    def _follow(self, bound: Bound, scope: Scope) -> Kinds:
        match bound:
            case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation):
                return self._annotated(annotation, scope)
            case ast.Name() | ast.Attribute() | ast.Call() | ast.IfExp():
                return self.of(bound, scope)
            case ast.Constant(value=None):
                return []
        return None

    def _of_attribute(self, cls: SourceClass, name: str) -> Kinds:
        key = (cls, name)
        if key not in self._attributes:
            self._attributes[key] = None  # for an attribute that is assigned from itself
            (line, *_) = self.hierarchy.lines(cls)
            every = dict.fromkeys([*line, *self._derived(cls, name)])
            found = [kinds for c in every for kinds in self._assigned(c, name)]
            outside = any(self._is_set_outside(m, name) for m in self._users(cls.name, name))
            self._attributes[key] = None if outside else _joined(found)
        return self._attributes[key]

    def _users(self, cls: str, attribute: str) -> list[Module]:
        """The modules that mention both names."""
        files = self.modules.mentioning([cls])
        files = [file for file in files if has_word(file.data, attribute.encode())]
        return [module for module in map(self.modules.parse, files) if module is not None]

    def _derived(self, cls: SourceClass, attribute: str) -> Iterator[SourceClass]:
        """Classes below `cls` in files that mention the attribute too."""
        words, searched = {cls.name}, set[str]()
        while words:
            searched |= words
            found = [
                c
                for word in words
                for module in self._users(word, attribute)
                for c in module.classes.values()
                if any(last_name(base) in words for base in c.node.bases)
                and any(cls in line for line in self.hierarchy.lines(c))
            ]
            yield from found
            words = {c.name for c in found} - searched

    def _is_set_outside(self, module: Module, attribute: str) -> bool:
        """Whether the attribute of something else than `self` is assigned to."""
        return any(
            isinstance(node, ast.Attribute)
            and node.attr == attribute
            and isinstance(node.ctx, ast.Store)
            and not attribute_of_self(node, scope)
            for scope, statement in module.statements_with([attribute])
            if scope.function is not None
            for node in ast.walk(statement)
        )

    def _assigned(self, cls: SourceClass, name: str) -> Iterator[Kinds]:
        """What each assignment to `self.name` in the methods of `cls` says."""
        for bound in cls.body.names.get(name, ()):
            if isinstance(bound, ast.AnnAssign):
                yield self._annotated(bound.annotation, cls.body)
        for scope, statement in cls.scope.module.statements_with([name]):
            if scope.cls is cls and scope.function is not None:
                for node in ast.walk(statement):
                    match node:
                        case ast.AnnAssign(target=target, annotation=annotation):
                            if attribute_of_self(target, scope) == name:
                                yield self._annotated(annotation, scope)
                        case ast.Assign(targets=targets, value=value):
                            for each, part in (p for t in targets for p in pairs(t, value)):
                                if attribute_of_self(each, scope) == name:
                                    yield self._of_bound(part, scope)

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
            case ast.Subscript(value=value, slice=inner) if last_name(value) in _WRAPS:
                parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                parts = parts[:1] if last_name(value) == "Annotated" else parts
                return _joined([self._annotated(part, scope) for part in parts])
            case ast.Name() | ast.Attribute():
                classes, unsure = self.resolver.classes(annotation, scope)
                believed = [Kind(c, is_sure=False) for c in classes]
                return None if unsure else self._plain(believed)
        return None

    def _plain(self, kinds: Sequence[Kind]) -> Kinds:
        """The kinds; unknown for a protocol, and for a class that stands for another."""
        for kind in kinds:
            for cls in (c for line in self.hierarchy.lines(kind.cls) for c in line):
                named = {last_name(base) for base in cls.node.bases}
                named |= {
                    last_name(b.value) for b in cls.node.bases if isinstance(b, ast.Subscript)
                }
                if "__getattr__" in cls.body.names or "Protocol" in named:
                    return None
        return kinds or None


def attribute_of_self(expression: ast.expr, scope: Scope) -> str:
    """`x` of `self.x` in a method, or in a function inside one; "" of anything else."""
    match expression:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            at = scope.holder(name)
            return attribute if at is not None and at.first == name else ""
    return ""


def _joined(every: Sequence[Kinds]) -> Kinds:
    """Any of these; unknown where one of them is, or where there is none."""
    if not every or any(kinds is None for kinds in every):
        return None
    return list(dict.fromkeys(kind for kinds in every for kind in kinds or ())) or None
