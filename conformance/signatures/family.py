"""One case per class of a family and clause: what the checks on signatures are run with."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.contract import Clause, Level
from conformance.known import Known
from conformance.pool import Family
from conformance.signatures.findings import Finding, Place, Scan
from conformance.signatures.imported import members
from conformance.signatures.live import member_of, qualified
from conformance.signatures.read import source_members
from conformance.signatures.rules import RULES
from conformance.violation import violation

COVERAGE = "every_subclass_is_covered"


@dataclass(frozen=True, slots=True)
class ClassCase:
    """One member of a family under one clause.

    `cls` is the class where it was imported; where it was read from source, `dotted` names
    it and `found` is what breaks the clause. Both are empty for a member that is only a
    name: a module that cannot be imported or read, or an exemption of nothing; `problem`
    says so.
    """

    family: Family
    clause: Clause
    name: str
    cls: type | None = None
    covered: bool = False
    problem: str = ""
    dotted: str = ""
    found: tuple[Finding, ...] = ()

    @property
    def owner(self) -> str:
        """The family's name, under which the report counts this check."""
        return self.family.name

    @property
    def known(self) -> Known | None:
        """The declaration that this class breaks this clause, if there is one."""
        name = self.full.rpartition(".")[2] or self.name
        return self.family.known.get(name, {}).get(self.clause.id)

    @property
    def is_exempt(self) -> bool:
        keys = {qualified(k) if isinstance(k, type) else k for k in self.family.exempt}
        return self.full in keys

    def check(self) -> None:
        """Raise the `Violation` of the clause, with every problem of this class."""
        evidence = list(self._evidence())
        if evidence:
            root = f"{self.family.root.__module__}.{self.family.name}"
            told = [("family", root), ("class", self.full or self.name), *evidence]
            raise violation(self.clause.id, told)

    @property
    def full(self) -> str:
        """The dotted name; "" for what is only a name."""
        return qualified(self.cls) if self.cls else self.dotted

    def _evidence(self) -> Iterator[tuple[str, str]]:
        for finding in self.found:
            yield "found", finding.text
            yield "at", near(finding.place)
            yield from (("caller", near(place)) for place in finding.callers)
        if problems := [self.problem] if self.problem else list(self._problems()):
            yield from (("found", problem) for problem in problems)

    def _problems(self) -> Iterator[str]:
        if self.cls is not None and self.clause.id in RULES:
            root, verbs = self.family.root, self.family.verbs
            rule, member = RULES[self.clause.id], member_of(self.cls, root, verbs)
            problems = rule(member_of(root, root, verbs), member, verbs)
            yield from (p.text for p in problems if not p.only_if_met)
        elif self.clause.id == COVERAGE and self.covered and self.is_exempt:
            yield "it has a Pool and is exempt too: delete the exemption"
        elif self.clause.id == COVERAGE and not self.covered and not self.is_exempt:
            yield "no Pool makes this class, and no exemption gives a reason"


def near(place: Place) -> str:
    """`path:line`, from the current folder on where the path lies below it."""
    path, here = place.path, Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{place.line}"


def class_cases(
    family: Family, clause: Clause, made: Collection[type], level: Level = "required"
) -> list[ClassCase]:
    """One case per class, under this clause; for the coverage gate also one per module that
    cannot be imported or read, and per exemption that names nothing. `made` are the pools'
    classes. Of what source shows, warnings count at level strict alone.

    Raises `ScanError` for a family whose source is not there.
    """
    cases = _from_source(family, clause, made, level) if family.source else []
    if not family.source and "source" not in clause.needs:
        cases = _imported(family, clause, made)
    return _told_apart(cases)


def _told_apart(cases: list[ClassCase]) -> list[ClassCase]:
    """Classes of one name have their modules in theirs."""
    names = Counter(case.name for case in cases)
    return [replace(c, name=c.full) if names[c.name] > 1 and c.full else c for c in cases]


def _imported(family: Family, clause: Clause, made: Collection[type]) -> list[ClassCase]:
    found = members(family)
    cases = [
        ClassCase(family, clause, cls.__name__, cls, cls in made)
        for cls in found.classes
        if not (clause.id == COVERAGE and inspect.isabstract(cls))
    ]
    if clause.id == COVERAGE:
        for name, error in found.unimportable.items():
            cases.append(_named(family, clause, name, f"cannot be imported: {error}"))
        cases += [_stale(family, clause, name) for name in found.stale]
    return cases


def _from_source(
    family: Family, clause: Clause, made: Collection[type], level: Level
) -> list[ClassCase]:
    found = source_members(family)
    fails = ("error", "warning") if level == "strict" else ("error",)
    covered = {qualified(cls) for cls in made}
    cases = [
        ClassCase(
            family,
            clause,
            dotted.rpartition(".")[2],
            covered=dotted in covered,
            dotted=dotted,
            found=tuple(
                f
                for f in found.scan.findings
                if f.clause == clause.id and f.cls == dotted and f.severity in fails
            ),
        )
        for dotted in (*found.classes, *_accused_root(found.scan, clause))
        if not (clause.id == COVERAGE and dotted in found.scan.abstract)
    ]
    if clause.id == COVERAGE:
        cases += [_named(family, clause, name, text) for name, text in found.unreadable.items()]
        cases += [_stale(family, clause, name) for name in found.stale]
    return cases


def _accused_root(scan: Scan, clause: Clause) -> list[str]:
    """The root, where a call of it is a finding."""
    accused = any(f.cls == scan.root and f.clause == clause.id for f in scan.findings)
    return [scan.root] if accused else []


def _named(family: Family, clause: Clause, name: str, problem: str) -> ClassCase:
    return ClassCase(family, clause, name, problem=problem)


def _stale(family: Family, clause: Clause, name: str) -> ClassCase:
    return _named(family, clause, name, "is exempt, but is no class or module here")
