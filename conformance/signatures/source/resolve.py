"""What an expression names, across modules: classes, and modules on the way to them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from conformance.signatures.source.bindings import Bound, Imported
from conformance.signatures.source.modules import Modules
from conformance.signatures.source.scopes import Module, Scope, SourceClass

Named = SourceClass | str | None
"""A class, the dotted name of a module, or something that source alone does not tell."""


@dataclass(slots=True, eq=False)
class Resolver:
    """Follows names through imports, aliases, re-exports and star imports; cycles end."""

    modules: Modules
    _open: set[object] = field(default_factory=set)

    def classes(self, expression: ast.expr, scope: Scope) -> tuple[list[SourceClass], bool]:
        """The classes that `expression` may be, and whether it may be something else too."""
        named = list(self.named(expression, scope))
        classes = [n for n in named if isinstance(n, SourceClass)]
        return list(dict.fromkeys(classes)), len(classes) < len(named)

    def class_at(self, dotted: str) -> list[SourceClass]:
        """The classes at `module.Class` or `module.Outer.Inner`, wherever they are defined."""
        parts = dotted.split(".")
        for end in range(len(parts) - 1, 0, -1):
            named: list[Named] = [".".join(parts[:end])]
            for name in parts[end:]:
                named = [inner for owner in named for inner in self._attribute(owner, name)]
            if found := [n for n in named if isinstance(n, SourceClass)]:
                return list(dict.fromkeys(found))
        return []

    def named(self, expression: ast.expr, scope: Scope) -> Iterator[Named]:
        match expression:
            case ast.Name(id=name):
                yield from self._name(name, scope)
            case ast.Attribute(value=value, attr=name):
                for owner in list(self.named(value, scope)):
                    yield from self._attribute(owner, name)
            case ast.Subscript(value=value):
                yield from self.named(value, scope)
            case ast.IfExp(body=one, orelse=other):
                yield from self.named(one, scope)
                yield from self.named(other, scope)
            case ast.BoolOp(values=values):
                for value in values:
                    yield from self.named(value, scope)
            case _:
                yield None

    def _name(self, name: str, scope: Scope) -> Iterator[Named]:
        at: Scope | None = scope
        while at is not None:
            if name in at.names:
                for bound in at.names[name]:
                    yield from self.bound(bound, at)
                return
            at = at.parent
        yield from self._starred(name, scope.module)

    def _starred(self, name: str, module: Module) -> Iterator[Named]:
        found: list[Named] = []
        for star in module.scope.names.get("*", ()):
            assert isinstance(star, Imported)
            loaded = self.modules.load(star.module)
            if loaded and loaded is not module and _exports(loaded, name):
                found += (named for named in self._member(loaded, name) if named is not None)
        yield from found or [None]

    def bound(self, bound: Bound, scope: Scope) -> Sequence[Named]:
        """What a definition stands for."""
        return self._once(id(bound), lambda: self._follow(bound, scope))

    def _once(self, key: object, follow: Callable[[], Iterator[Named]]) -> Sequence[Named]:
        """What `follow` yields; nothing known where it comes back to itself."""
        if key in self._open:
            return [None]
        self._open.add(key)
        try:
            return list(follow())
        finally:
            self._open.discard(key)

    def _follow(self, bound: Bound, scope: Scope) -> Iterator[Named]:
        match bound:
            case ast.ClassDef():
                yield scope.module.classes[bound]
            case Imported(module, ""):
                yield module if self.modules.exists(module) else None
            case Imported(module, name):
                yield from self._attribute(module, name)
            case ast.AnnAssign(value=value):
                yield from self.named(value, scope) if value else [None]
            case ast.expr():
                yield from self.named(bound, scope)
            case _:
                yield None

    def _attribute(self, owner: Named, name: str) -> Iterator[Named]:
        if isinstance(owner, SourceClass):
            yield from self._once((owner, name), lambda: self._in_class(owner, name))
        elif isinstance(owner, str):
            module = self.modules.load(owner)
            found = list(self._member(module, name)) if module else [None]
            inner = f"{owner}.{name}"
            if any(f is not None for f in found) or (module and name in module.scope.names):
                yield from found
            else:
                yield inner if self.modules.exists(inner) else None
        else:
            yield None

    def _in_class(self, cls: SourceClass, name: str) -> Iterator[Named]:
        if name in cls.body.names:
            for bound in cls.body.names[name]:
                yield from self.bound(bound, cls.body)
            return
        for base in cls.node.bases:
            for owner in list(self.named(base, cls.scope)):
                if isinstance(owner, SourceClass):
                    yield from self._attribute(owner, name)

    def _member(self, module: Module, name: str) -> Iterator[Named]:
        if name in module.scope.names:
            for bound in module.scope.names[name]:
                yield from self.bound(bound, module.scope)
        else:
            yield from self._once((id(module), name), lambda: self._starred(name, module))


def _exports(module: Module, name: str) -> bool:
    """Whether a star import takes the name, where the module has it."""
    listed = module.scope.names.get("__all__")
    if not listed:
        return not name.startswith("_")
    values = [v for bound in listed for v in _elements(bound)]
    return name in values or None in values


def _elements(bound: Bound) -> list[object]:
    """The elements of a list of constants; None for one that source does not tell."""
    if isinstance(bound, ast.List | ast.Tuple):
        return [e.value if isinstance(e, ast.Constant) else None for e in bound.elts]
    return [None]
