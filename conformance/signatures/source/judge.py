"""From a family read from source to findings, each with its severity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.signatures.findings import SEVERITIES, Finding, Place, Severity
from conformance.signatures.members import Member
from conformance.signatures.rules import RULES, Problem
from conformance.signatures.source.calls import Call
from conformance.signatures.source.family import SourceFamily, meets
from conformance.signatures.source.files import SourceFile
from conformance.signatures.source.forwarding import dropped
from conformance.signatures.source.modules import SourceClass

BY_CALLERS = (
    "override_accepts_every_keyword",
    "override_binds_by_position",
    "override_keeps_names",
)
"""Rules on calls that nobody need make: an error where a caller does, else a warning."""

_ALWAYS: dict[str, Severity] = {"override_keeps_defaults": "warning"}


def findings_of(family: SourceFamily) -> list[Finding]:
    """Every finding, errors first, then by place."""
    found = [*unbound_calls(family), *unreadable_files(family)]
    for cls in family.hierarchy.family:
        found += findings_on(family, cls)
    return sorted(found, key=_order)


def findings_on(family: SourceFamily, cls: SourceClass) -> Iterator[Finding]:
    """The findings on one class."""
    member = family.member(cls)
    for clause, rule in RULES.items():
        for problem in rule(family.root, member, family.verbs):
            yield _judged(family, cls, clause, problem)
    yield from _dropped(family, cls, member)
    yield from _stubs(family, cls, member)
    yield from _undecided(member)


def unbound_calls(family: SourceFamily) -> Iterator[Finding]:
    """Calls that do not bind on the method that they are sure to reach, and which no call of
    the root's would be: others are told of the override."""
    methods = {
        (member.dotted, verb): method
        for cls in (*family.hierarchy.roots, *family.hierarchy.family)
        for member in [family.member(cls)]
        for verb in family.verbs
        for method in member.methods.get(verb, ())
        if method.owner == member.dotted and method.signature is not None
    }
    for call in family.calls:
        for owner in sorted(call.binds_on):
            method = methods.get((owner, call.verb))
            if method is None or method.signature is None:
                continue
            why = call.why_unbound(method.signature)
            if why and (owner == family.root.dotted or not family.is_legal(call)):
                name = owner.rpartition(".")[2]
                text = f"this call fails on {call.verb}{method.signature} of {name}: {why}"
                yield Finding(
                    "every_call_binds", "error", owner, call.verb, _argument(why), text, call.place
                )


def unreadable_files(family: SourceFamily) -> Iterator[Finding]:
    """Files that mention the family or its verbs, and cannot be parsed."""
    names: dict[object, SourceFile] = {file.path: file for file in family.modules.files}
    for path, error in family.modules.unreadable.items():
        module = names[path].module if path in names else path.stem
        text = f"{module} cannot be read: {error}"
        yield Finding("every_subclass_is_covered", "error", module, "", "", text, Place(path, 1))


def _judged(family: SourceFamily, cls: SourceClass, clause: str, problem: Problem) -> Finding:
    reaching = family.reaching(cls, problem.verb, problem.method)
    meeting = [call for call in reaching if meets(call, problem)]
    severity: Severity = _ALWAYS.get(clause, "error")
    text = problem.text
    if clause in BY_CALLERS and problem.parameter:
        severity = "error" if meeting else "warning"
    if family.owners(cls) and not _refused(meeting, problem):
        severity = "note"
        text += "; only the pools that own it reach it, and none of them like this"
    elif severity == "error" and problem.method.is_stub:
        text += "; it only raises, and such a caller gets TypeError instead"
    callers = tuple(call.place for call in meeting) if severity == "error" else ()
    place = problem.method.place or cls.place
    return Finding(
        clause, severity, cls.dotted, problem.verb, problem.parameter, text, place, callers
    )


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
            if method.is_stub and method.owner == member.dotted:
                text = f"{verb} only raises NotImplementedError: the class lacks it"
                yield _stub("note", member, verb, text, method.place or cls.place)
            elif method.is_stub and not member.is_abstract and not _told_above(family, cls, verb):
                owner = method.owner.rpartition(".")[2]
                text = f"{verb} is not overridden: that of {owner} only raises"
                callers = tuple(c.place for c in family.calls if _runs(c, verb, member))
                severity: Severity = "error" if callers else "warning"
                yield _stub(severity, member, verb, text, cls.place, callers)


def _runs(call: Call, verb: str, member: Member) -> bool:
    """Whether the call is sure to be made of an instance of this class."""
    return call.verb == verb and call.is_sure and member.dotted in call.instances


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
