"""The classes under a root, and which method each of them has."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from conformance.signatures.source.bindings import Bound, Imported, last_name
from conformance.signatures.source.modules import Modules
from conformance.signatures.source.resolve import Resolver
from conformance.signatures.source.scopes import Module, SourceClass

Line = tuple[SourceClass, ...]
"""A class and its bases, in the order in which Python looks a method up."""

_MOST_VARIANTS = 16


@dataclass(slots=True, eq=False)
class Hierarchy:
    """Bases and derived classes of every class in the files that mention the family.

    `family` are the classes under the root, the root itself left out, in the order of their
    dotted names. `maybe` are those whose base is made by a call that is given a member.
    `names` are those under which the files know members.
    """

    modules: Modules
    resolver: Resolver
    roots: Sequence[SourceClass]
    family: list[SourceClass] = field(default_factory=list)
    maybe: list[SourceClass] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    _members: set[SourceClass] = field(default_factory=set)
    _bases: dict[SourceClass, list[list[SourceClass]]] = field(default_factory=dict)
    _lines: dict[SourceClass, list[Line]] = field(default_factory=dict)

    @classmethod
    def under(cls, modules: Modules, resolver: Resolver, roots: Sequence[SourceClass]) -> Hierarchy:
        """Finds the family: files that mention one of its classes are parsed, under any name
        that they give it, until no new class appears."""
        found = cls(modules, resolver, roots)
        members, known = set(roots) | set(found._outside()), found.names
        words = {member.name for member in members}
        while words:
            for file in modules.mentioning(sorted(words)):
                modules.parse(file)
            known |= words
            words = {n for m in modules.parsed for n in found._names_in(m, members, known)} - known
        scanned = {file.path for file in modules.files}
        family = [c for c in members - set(roots) if c.scope.module.file.path in scanned]
        found._members = set(family)
        made = (c for m in modules.parsed for c in m.classes.values() if c not in members)
        found.maybe = [c for c in made if _calls_with(c.node.bases, known)]
        found.family = sorted(family, key=lambda c: (c.dotted, c.node.lineno))
        return found

    def judges(self, cls: SourceClass) -> bool:
        """Whether what `cls` defines is told of `cls` itself: it is a root or a member."""
        return cls in self.roots or cls in self._members

    def lines(self, cls: SourceClass) -> list[Line]:
        """Every order of bases that `cls` may have: one, but where a base depends on a
        condition."""
        if cls not in self._lines:
            self._lines[cls] = [(cls,)]  # for a class that is its own base
            choices = islice(product(*self._bases_of(cls)), _MOST_VARIANTS)
            self._lines[cls] = [line for bases in choices for line in self._linearized(cls, bases)]
        return self._lines[cls]

    def below(self, cls: SourceClass) -> Iterator[SourceClass]:
        """The members of the family that are or derive from `cls`."""
        for member in self.family:
            if any(cls in line for line in self.lines(member)):
                yield member

    def _outside(self) -> Iterator[SourceClass]:
        """Classes under the root that lie outside the scanned files, and that a class in
        these names as a base."""
        scanned = {file.path for file in self.modules.files}
        for file in self.modules.with_outside_bases():
            module = self.modules.parse(file)
            for cls in module.classes.values() if module else ():
                for line in self.lines(cls):
                    if any(root in line for root in self.roots):
                        yield from (c for c in line if c.scope.module.file.path not in scanned)

    def _names_in(
        self, module: Module, members: set[SourceClass], known: set[str]
    ) -> Iterator[str]:
        """Makes members of the classes of a module that derive from one; yields every name
        under which the module knows a member."""
        names = {cls.name for cls in module.classes.values() if cls in members}
        grown = True
        while grown:
            new = [
                cls
                for cls in module.classes.values()
                if cls not in members
                and (cls.scope.parent or _named(cls.node.bases) & (known | names))
                and any(base in members for choice in self._bases_of(cls) for base in choice)
            ]
            members.update(new)
            names |= {cls.name for cls in new}
            grown = bool(new)
        yield from names
        for name, every in module.scope.names.items():
            aliases = (b for b in every if _source_names(b) & known)
            if any(c in members for b in aliases for c in self.resolver.bound(b, module.scope)):
                yield name

    def _bases_of(self, cls: SourceClass) -> list[list[SourceClass]]:
        if cls not in self._bases:
            # A base of the class's own name is what the name stood for before.
            again = cls.name in _named(cls.node.bases)
            names = cls.scope.names_at(cls.node.lineno) if again else None
            scope = replace(cls.scope, _names=names) if again else cls.scope
            named = (self.resolver.classes(base, scope)[0] for base in cls.node.bases)
            self._bases[cls] = [[b for b in base if b is not cls] for base in named if base]
        return self._bases[cls]

    def _linearized(self, cls: SourceClass, bases: Sequence[SourceClass]) -> Iterator[Line]:
        for above in islice(product(*(self.lines(base) for base in bases)), _MOST_VARIANTS):
            yield (cls, *_merged([*map(list, above), list(bases)]))


def is_abstract_base(cls: SourceClass) -> bool:
    """Whether `abc` keeps classes with abstract methods from being made."""
    named = [last_name(base) for base in cls.node.bases]
    metaclass = [last_name(k.value) for k in cls.node.keywords if k.arg == "metaclass"]
    return "ABC" in named or "Protocol" in named or "ABCMeta" in metaclass


def _named(expressions: Iterable[ast.expr]) -> set[str]:
    """Every name in these expressions, the last one of dotted names."""
    nodes = (node for expression in expressions for node in ast.walk(expression))
    return {last_name(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)}


def _calls_with(bases: Iterable[ast.expr], names: set[str]) -> bool:
    """Whether a base is made by a call that has one of these names among its arguments."""
    calls = [base for base in bases if isinstance(base, ast.Call)]
    return bool(_named(argument for call in calls for argument in call.args) & names)


def _source_names(bound: Bound) -> set[str]:
    """The names that an import or an assignment takes over."""
    match bound:
        case Imported(_, name):
            return {name}
        case ast.AnnAssign(value=ast.expr() as value):
            return _named([value])
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.IfExp() | ast.BoolOp():
            return _named([bound])
    return set()


def _merged(lines: list[list[SourceClass]]) -> Iterator[SourceClass]:
    """The C3 merge (Barrett et al., 1996); the first head, where there is no consistent one."""
    while lines := [line for line in lines if line]:
        heads = [line[0] for line in lines]
        good = (h for h in heads if not any(h in line[1:] for line in lines))
        head = next(good, heads[0])
        yield head
        lines = [[c for c in line if c is not head] for line in lines]
