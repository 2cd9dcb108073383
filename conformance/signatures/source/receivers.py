"""Whose method a call reaches: the class of its receiver, as far as source tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.signatures.source.bindings import last_name
from conformance.signatures.source.facts import Fact, atoms
from conformance.signatures.source.kinds import Kind, Kinds, KindsOf, attribute_of_self
from conformance.signatures.source.methods import Methods, first_in
from conformance.signatures.source.parameters import takes_instance
from conformance.signatures.source.resolve import Resolver
from conformance.signatures.source.scopes import Scope, SourceClass


@dataclass(frozen=True, slots=True)
class Receiver:
    """What a method is called on.

    `owners` are the dotted names of the classes whose method may run, None where the
    receiver cannot be decided ("maybe"); `excluded` are classes that it is no instance of.
    `instances` are those that it may be an instance of, which is sure where no annotation
    had to be believed; `tried` those on whose method the call is made. `attribute` is the
    attribute of `self` that it is, `member` the attribute of anything. `takes_self` is 1
    where the instance is the first argument.
    """

    owners: frozenset[str] | None = None
    instances: frozenset[str] = frozenset()
    tried: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    is_sure: bool = False
    attribute: str = ""
    member: str = ""
    takes_self: int = 0


NOBODY = Receiver(owners=frozenset(), is_sure=True)


@dataclass(slots=True, eq=False)
class Receivers:
    """Infers receivers from constructors, annotations, `self`, `super()` and `isinstance`."""

    resolver: Resolver
    methods: Methods
    kinds: KindsOf

    def of(
        self, expression: ast.expr, scope: Scope, verb: str, facts: Sequence[Fact] = ()
    ) -> Receiver:
        """The receiver `expression` of a call of `verb` in `scope`, where `facts` hold."""
        if isinstance(expression, ast.Call) and last_name(expression) == "super" and scope.cls:
            return self._super(expression, scope, scope.cls, verb)
        named = list(self.resolver.named(expression, scope))
        classes = [n for n in named if isinstance(n, SourceClass)]
        if classes:
            return self._unbound(classes, verb)
        if any(isinstance(n, str) for n in named):
            return NOBODY  # a function of a module
        return self._instance(expression, scope, verb, facts)

    def _super(self, call: ast.Call, scope: Scope, cls: SourceClass, verb: str) -> Receiver:
        after = cls
        if call.args:
            given, _ = self.resolver.classes(call.args[0], scope)
            if len(given) != 1:
                return Receiver()
            after = given[0]
        hierarchy = self.methods.hierarchy
        every = [cls, *hierarchy.below(cls)]
        lines = [line for member in every for line in hierarchy.lines(member) if after in line]
        rest = [line[line.index(after) + 1 :] for line in lines]
        owners = frozenset(d.owner.dotted for line in rest for d in first_in(line, verb))
        own = [d.owner.dotted for d in first_in(rest[0], verb)] if rest else []
        return Receiver(owners, tried=frozenset(own), is_sure=True)

    def _unbound(self, classes: Sequence[SourceClass], verb: str) -> Receiver:
        found = [d for cls in classes for d in self.methods.definitions(cls, verb)]
        owners = frozenset(d.owner.dotted for d in found)
        names = frozenset(cls.dotted for cls in classes)
        functions = [self.methods.function(d) for d in found]
        static = bool(functions) and not any(f is None or takes_instance(f) for f in functions)
        return Receiver(owners, names, owners, is_sure=True, takes_self=0 if static else 1)

    def _instance(
        self, expression: ast.expr, scope: Scope, verb: str, facts: Sequence[Fact]
    ) -> Receiver:
        kinds, excluded, is_open = self._narrowed(expression, scope, facts)
        attribute = attribute_of_self(expression, scope)
        if kinds is None or is_open:
            names = frozenset(c.dotted for c in excluded)
            member = expression.attr if isinstance(expression, ast.Attribute) else ""
            return Receiver(attribute=attribute, member=member, excluded=names)
        every = list(dict.fromkeys(c for kind in kinds for c in self._instances(kind)))
        found = {c: self.methods.definitions(c, verb) for c in every if c not in excluded}
        return Receiver(
            owners=frozenset(d.owner.dotted for c in found for d in found[c]),
            instances=frozenset(c.dotted for c in found),
            tried=frozenset(d.owner.dotted for k in kinds for d in found.get(k.cls, ())),
            is_sure=all(kind.is_sure for kind in kinds),
            attribute=attribute,
        )

    def _narrowed(
        self, expression: ast.expr, scope: Scope, facts: Sequence[Fact]
    ) -> tuple[Kinds, set[SourceClass], bool]:
        """The kinds of `expression` where the facts hold, classes that it is no instance of,
        and whether it is asked for something that makes the rest unsure."""
        kinds, excluded, is_open = self.kinds.of(expression, scope), set[SourceClass](), False
        text = ast.dump(expression)
        for test, outcome in (atom for fact in facts for atom in atoms(*fact)):
            test = _meant(test, scope)
            if not _asks(test, text):
                continue
            classes = self._tested(test, scope)
            if classes is None:
                is_open = True
            elif outcome:
                kinds, is_open = [Kind(c, is_sure=False) for c in classes], False
            else:
                excluded.update(c for cls in classes for c in self.methods.hierarchy.below(cls))
        return kinds, excluded, is_open

    def _tested(self, test: ast.expr, scope: Scope) -> list[SourceClass] | None:
        """The classes of an `isinstance`; None for another test, or for unknown classes."""
        match test:
            case (
                ast.Call(func=ast.Name("isinstance"), args=[_, given])
                | ast.Compare(
                    left=ast.Call(func=ast.Name("type")),
                    ops=[ast.Is() | ast.Eq()],
                    comparators=[given],
                )
            ):
                parts = given.elts if isinstance(given, ast.Tuple) else [given]
                found = [self.resolver.classes(part, scope) for part in parts]
                if all(classes and not unsure for classes, unsure in found):
                    return [c for classes, _ in found for c in classes]
        return None

    def _instances(self, kind: Kind) -> Iterator[SourceClass]:
        yield kind.cls
        if not kind.is_exact:
            yield from self.methods.hierarchy.below(kind.cls)


def _meant(test: ast.expr, scope: Scope) -> ast.expr:
    """The test that a variable stands for."""
    if isinstance(test, ast.Name) and scope.function is not None:
        match scope.names.get(test.id, ()):
            case (ast.Call() | ast.Compare() as value,):
                return value
    return test


def _asks(test: ast.expr, text: str) -> bool:
    """Whether a test looks at what an expression is."""
    return any(
        isinstance(node, ast.Call)
        and last_name(node.func) in ("isinstance", "hasattr", "issubclass", "type")
        and any(text == ast.dump(argument) for argument in node.args)
        for node in ast.walk(test)
    )
