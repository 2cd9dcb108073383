"""From a family read from source to findings, each with its severity."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from conformance.signatures.findings import SEVERITIES, Finding, Place, Severity
from conformance.signatures.members import Member, Method
from conformance.signatures.rules import RULES, Problem
from conformance.signatures.source.calls import Call
from conformance.signatures.source.family import SourceFamily, meets
from conformance.signatures.source.forwarding import dropped
from conformance.signatures.source.scopes import SourceClass

BY_CALLERS = (
    "override_accepts_every_keyword",
    "override_binds_by_position",
    "override_keeps_names",
)
"""Rules on calls that nobody need make: an error where a caller does, else a warning."""

_ALWAYS: dict[str, Severity] = {"override_keeps_defaults": "warning"}


def findings_of(family: SourceFamily) -> list[Finding]:
    """Every finding, errors first, then by place."""
    found = [*unbound_calls(family), *unreadable_files(family), *_maybe_members(family)]
    for cls in family.hierarchy.family:
        found += findings_on(family, cls)
    return sorted(found, key=_order)


def findings_on(family: SourceFamily, cls: SourceClass) -> Iterator[Finding]:
    """The findings on one class."""
    member = family.member(cls)
    judged = []
    for clause, rule in RULES.items():
        for problem in rule(family.root, member, family.verbs):
            finding = _judged(family, cls, clause, problem)
            if finding.callers or not problem.only_if_met:
                judged.append(finding)
    yield from judged
    yield from _refused_calls(family, cls, member, {c for f in judged for c in f.callers})
    yield from _dropped(family, cls, member)
    yield from _stubs(family, cls, member)
    yield from _undecided(member)


def unbound_calls(family: SourceFamily) -> Iterator[Finding]:
    """Calls that no call of the root is like, and that do not bind on the method on which
    they are sure to be tried; each is told where it is made."""
    methods = {
        (member.dotted, verb): method
        for cls in (*family.hierarchy.roots, *family.hierarchy.family)
        for member in [family.member(cls)]
        for verb in family.verbs
        for method in member.methods.get(verb, ())
        if method.owner == member.dotted
    }
    for call in family.calls:
        for owner in sorted(call.receiver.tried):
            method = methods.get((owner, call.verb))
            why = _why_unbound(call, method) if method else ""
            if method and why and (owner == family.root.dotted or not family.is_legal(call)):
                of = f"{call.verb}{method.signature} of {owner.rpartition('.')[2]}"
                yield _unbound(owner, call.verb, why, f"this call fails on {of}: {why}", call.place)


def _refused_calls(
    family: SourceFamily, cls: SourceClass, member: Member, told: set[Place]
) -> Iterator[Finding]:
    """Calls that the root accepts and this class does not, for which no rule has a name."""
    for verb, methods in member.methods.items():
        for method in methods:
            refused: dict[str, list[Call]] = {}
            calls = (c for c in family.calls if c.verb == verb and not method.inherited)
            for call in calls:
                why = _why_unbound(call, method)
                new = why and call.place not in told and family.is_legal(call)
                if new and family.reaches(call, cls, method):
                    refused.setdefault(why, []).append(call)
            for why, each in refused.items():
                text = f"{verb}{method.signature} refuses a call: {why}"
                place = method.place or cls.place
                yield _unbound(member.dotted, verb, why, text, place, *_callers(each))


def _why_unbound(call: Call, method: Method) -> str:
    return call.why_unbound(method.signature) if method.signature is not None else ""


def _unbound(
    cls: str,
    verb: str,
    why: str,
    text: str,
    place: Place,
    callers: tuple[Place, ...] = (),
    maybe: tuple[Place, ...] = (),
) -> Finding:
    about = _argument(why)
    return Finding("every_call_binds", "error", cls, verb, about, text, place, callers, maybe)


def unreadable_files(family: SourceFamily) -> Iterator[Finding]:
    """Files that cannot be opened, or that mention the family or its verbs and have an error."""
    names = {*family.hierarchy.names, *family.verbs}
    mentioning = {file.path for file in family.modules.mentioning(names)}
    for file in family.modules.files:
        error = family.modules.unreadable.get(file.path)
        if error and (file.error or file.path in mentioning):
            text = f"{file.module} cannot be read: {error}"
            place = Place(file.path, family.modules.error_lines.get(file.path, 1))
            yield Finding("every_subclass_is_covered", "error", file.module, "", "", text, place)


def _maybe_members(family: SourceFamily) -> Iterator[Finding]:
    for cls in family.hierarchy.maybe:
        bases = ", ".join(ast.unparse(base) for base in cls.node.bases)
        text = f"{cls.name}({bases}) may be of the family: source does not tell its base"
        yield Finding("every_subclass_is_covered", "note", cls.dotted, "", "", text, cls.place)


def _judged(family: SourceFamily, cls: SourceClass, clause: str, problem: Problem) -> Finding:
    reaching = family.reaching(cls, problem.verb, problem.method)
    meeting = [call for call in reaching if meets(call, problem)]
    severity: Severity = _ALWAYS.get(clause, "error")
    text = problem.text
    if clause in BY_CALLERS and problem.parameter:
        severity = "error" if meeting else "warning"
    if family.owners(cls).classes and not _refused(meeting, problem):
        severity = "note"
        text += "; only the pools that own it reach it, and none of them like this"
    elif severity == "error" and problem.method.is_stub:
        text += "; it only raises, and such a caller gets TypeError instead"
    meets_it = severity == "error" and clause != "pair_accepts_the_same_keywords"
    callers, maybe = _callers(meeting) if meets_it else ((), ())
    place = problem.method.place or cls.place
    of = clause, severity, cls.dotted, problem.verb, problem.parameter
    return Finding(*of, text, place, callers, maybe)


def _callers(calls: Sequence[Call]) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    """Where they are made, those with a decided receiver first, and those without one."""
    decided = [call.place for call in calls if call.receiver.owners is not None]
    maybe = [call.place for call in calls if call.receiver.owners is None]
    return tuple(dict.fromkeys([*decided, *maybe])), tuple(dict.fromkeys(maybe))


def _refused(meeting: Sequence[Call], problem: Problem) -> bool:
    """Whether one of these calls does not bind on the method with the problem."""
    signature = problem.method.signature
    return any(signature is None or call.why_unbound(signature) for call in meeting)


def _dropped(family: SourceFamily, cls: SourceClass, member: Member) -> Iterator[Finding]:
    for drop in dropped(cls, family.verbs, family.methods):
        parent = drop.parent.owner.name
        text = f"{drop.verb} accepts {drop.parameter}, does not pass it to {parent}, which uses it"
        yield Finding(
            "accepted_parameters_are_forwarded",
            "warning",
            member.dotted,
            drop.verb,
            drop.parameter,
            text,
            drop.definition.place,
        )


def _stubs(family: SourceFamily, cls: SourceClass, member: Member) -> Iterator[Finding]:
    """Verbs that only raise: a note where the class says so itself, else a warning, or an
    error where a caller is sure to reach it."""
    for verb in family.verbs:
        for method in member.methods.get(verb, ()):
            if method.is_stub and method.owner == member.dotted and member.is_abstract:
                continue
            if method.is_stub and method.owner == member.dotted:
                text = f"{verb} only raises NotImplementedError: the class lacks it"
                yield _stub("note", member, verb, text, method.place or cls.place)
            elif method.is_stub and not member.is_abstract and not _told_above(family, cls, verb):
                owner = method.owner.rpartition(".")[2]
                text = f"{verb} is not overridden: that of {owner} only raises"
                same = [c.dotted for c in _with_the_same(family, cls, verb)]
                callers = tuple(c.place for c in family.calls if _runs(c, verb, same))
                severity: Severity = "error" if callers else "warning"
                yield _stub(severity, member, verb, text, cls.place, callers)


def _with_the_same(family: SourceFamily, cls: SourceClass, verb: str) -> Iterator[SourceClass]:
    """`cls` and the classes below it that have its method."""
    own = family.methods.definitions(cls, verb)
    for below in family.hierarchy.below(cls):
        if family.methods.definitions(below, verb) == own:
            yield below


def _runs(call: Call, verb: str, names: Sequence[str]) -> bool:
    """Whether the call is sure to be made of an instance of one of these classes."""
    receiver = call.receiver
    return call.verb == verb and receiver.is_sure and not receiver.instances.isdisjoint(names)


def _stub(
    severity: Severity,
    member: Member,
    verb: str,
    text: str,
    place: Place,
    callers: tuple[Place, ...] = (),
) -> Finding:
    return Finding("stubs_are_overridden", severity, member.dotted, verb, "", text, place, callers)


def _told_above(family: SourceFamily, cls: SourceClass, verb: str) -> bool:
    """Whether a concrete base in the family has the same stub, and answers for it."""
    own = family.methods.definitions(cls, verb)
    return any(
        base not in family.hierarchy.roots
        and family.hierarchy.judges(base)
        and not family.methods.is_abstract(base)
        and family.methods.definitions(base, verb) == own
        for line in family.hierarchy.lines(cls)
        for base in line[1:]
    )


def _undecided(member: Member) -> Iterator[Finding]:
    for verb, methods in member.methods.items():
        for method in methods:
            if method.signature is None and not method.problem and not method.inherited:
                text = f"{verb}: its signature cannot be decided from source"
                place = method.place or member.place
                assert place is not None
                yield Finding(
                    "override_accepts_every_keyword", "note", member.dotted, verb, "", text, place
                )


def _argument(why: str) -> str:
    """The name that a `TypeError` of binding quotes."""
    return why.split("'")[1] if why.count("'") > 1 else ""


def _order(finding: Finding) -> tuple[int, str, Place, str]:
    rank = SEVERITIES.index(finding.severity)
    return rank, finding.clause if rank == 2 else "", finding.place, finding.text
