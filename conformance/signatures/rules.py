"""Rules that compare the signature of an override with that of its root.

They rest on substitutability: a call that is legal on the root is legal on every subclass
(Liskov and Wing, 1994). A keyword that is missing altogether is told by
`accepts_every_keyword` alone, not by the other rules too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from itertools import product

from conformance.signatures.members import Member, Method


@dataclass(frozen=True, slots=True)
class Problem:
    """One sentence on `verb`. A call meets the problem where it passes `keyword` by name, or
    more than `position` positional arguments; every call does where neither is given.
    `position` counts from 0. One that another rule tells `only_if_met` is no problem of the
    signature alone."""

    verb: str
    parameter: str
    text: str
    method: Method
    keyword: str = ""
    position: int | None = None
    only_if_met: bool = False


Rule = Callable[[Member, Member, Sequence[str]], Iterator[Problem]]

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_KEYWORD = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def accepts_every_keyword(root: Member, cls: Member, verbs: Sequence[str]) -> Iterator[Problem]:
    """Every optional parameter of the root can be passed by keyword to the override."""
    for verb in verbs:
        for method in cls.methods.get(verb, ()):
            if method.problem and not method.inherited:
                yield Problem(verb, "", f"{verb} {method.problem}", method)
    for verb, ours, theirs, method in _pairs(root, cls, verbs):
        places = [p.name for p in _positional(ours)]
        for name, parameter in ours.parameters.items():
            optional = _optional(parameter) and parameter.kind in _KEYWORD
            if optional and not takes_keyword(theirs, name):
                text = f"{verb}{theirs} does not accept {name}=, which {root.name} does"
                position = places.index(name) if name in places else None
                if position is not None and _has_room(theirs, position):
                    position = None
                yield Problem(verb, name, text, method, name, position)


def binds_by_position(root: Member, cls: Member, verbs: Sequence[str]) -> Iterator[Problem]:
    """A positional argument of the root reaches the parameter of the same meaning."""
    for verb, ours, theirs, method in _pairs(root, cls, verbs):
        for place, parameter in enumerate(_positional(ours)):
            if what := _misplaced(root.name, theirs, place, parameter):
                text, name = f"{verb}{theirs}{what}", parameter.name
                missing = _optional(parameter) and not takes_keyword(theirs, name)
                yield Problem(verb, name, text, method, "", place, only_if_met=missing)


def _misplaced(root: str, theirs: Signature, place: int, parameter: Parameter) -> str:
    """What a positional argument of the root meets here; "" where it is at home."""
    name, here = parameter.name, _positional(theirs)
    places = {p.name: i for i, p in enumerate(here)}
    root_says = f": positional argument {place + 1} is {name} on {root}"
    if places.get(name, place) != place:
        return f"{root_says}, here {name} is argument {places[name] + 1}"
    if name not in places and place < len(here) and _optional(parameter):
        return f"{root_says}, here it is {here[place].name}"
    missing = _optional(parameter) and not takes_keyword(theirs, name)
    if not missing and not _has_room(theirs, place):
        return f" takes {len(here)} positional arguments, {name} is one more"
    return ""


def requires_nothing_more(root: Member, cls: Member, verbs: Sequence[str]) -> Iterator[Problem]:
    """Every required parameter of the override is filled by a call with the root's."""
    for verb, ours, theirs, method in _pairs(root, cls, verbs):
        filled = [p for p in _positional(ours) if not _optional(p)]
        keywords = {n for n, p in ours.parameters.items() if not _optional(p)}
        for place, parameter in enumerate(theirs.parameters.values()):
            if _optional(parameter) or parameter.kind in _VARIADIC:
                continue
            by_place = parameter.kind in _POSITIONAL and place < len(filled)
            if not by_place and parameter.name not in keywords:
                text = f"{verb}{theirs} requires {parameter.name}, which {root.name} does not"
                yield Problem(verb, parameter.name, text, method)


def pair_agrees(root: Member, cls: Member, verbs: Sequence[str]) -> Iterator[Problem]:
    """A keyword added to one of offload and reload (the first two verbs) is on the other."""
    halves = [[(v, m) for m in cls.methods.get(v, ()) if m.signature] for v in verbs[:2]]
    told = set()
    for pair in product(*halves) if len(halves) == 2 else ():
        if all(method.inherited for _, method in pair):
            continue
        for (verb, has), (other, lacks) in (pair, pair[::-1]):
            for name in _added(root, verb, has):
                assert lacks.signature is not None
                text = f"{verb}{has.signature} accepts {name}=, {other}{lacks.signature} does not"
                if not takes_keyword(lacks.signature, name) and text not in told:
                    told.add(text)
                    yield Problem(verb, name, text, has)


def _added(root: Member, verb: str, method: Method) -> Iterator[str]:
    """The optional parameters that the root has not."""
    inherited = {name for m in root.methods[verb] if m.signature for name in m.signature.parameters}
    assert method.signature is not None
    for name, parameter in method.signature.parameters.items():
        if name not in inherited and _optional(parameter):
            yield name


def keeps_names(root: Member, cls: Member, verbs: Sequence[str]) -> Iterator[Problem]:
    """Required parameters can be passed by the names that they have on the root."""
    for verb, ours, theirs, method in _pairs(root, cls, verbs):
        for name, parameter in ours.parameters.items():
            required = not _optional(parameter) and parameter.kind in _KEYWORD
            if required and not takes_keyword(theirs, name):
                text = f"{verb}{theirs} has no parameter named {name}, as on {root.name}"
                yield Problem(verb, name, text, method, keyword=name)


def keeps_defaults(root: Member, cls: Member, verbs: Sequence[str]) -> Iterator[Problem]:
    """An optional parameter has the default that it has on the root."""
    for verb, ours, theirs, method in _pairs(root, cls, verbs):
        for name, parameter in ours.parameters.items():
            other = theirs.parameters.get(name)
            if _optional(parameter) and other is not None and other.default != parameter.default:
                text = (
                    f"{verb}{theirs}: {name} defaults to {_default(other)}, on "
                    f"{root.name} to {parameter.default!r}"
                )
                yield Problem(verb, name, text, method)


RULES: dict[str, Rule] = {
    "override_accepts_every_keyword": accepts_every_keyword,
    "override_binds_by_position": binds_by_position,
    "override_requires_nothing_more": requires_nothing_more,
    "pair_accepts_the_same_keywords": pair_agrees,
    "override_keeps_names": keeps_names,
    "override_keeps_defaults": keeps_defaults,
}
"""The rule behind each clause that needs signatures alone."""

_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def _pairs(
    root: Member, cls: Member, verbs: Sequence[str]
) -> Iterator[tuple[str, Signature, Signature, Method]]:
    """Each verb that `cls` overrides: the root's signature, its own, and whose it is."""
    for verb in verbs:
        for ours in root.methods.get(verb, ()):
            for theirs in cls.methods.get(verb, ()):
                if ours.signature and theirs.signature and not theirs.inherited:
                    yield verb, ours.signature, theirs.signature, theirs


def takes_keyword(signature: Signature, name: str) -> bool:
    """Whether `name=` can be passed."""
    parameter = signature.parameters.get(name)
    named = parameter is not None and parameter.kind in _KEYWORD
    return named or _takes_any(signature, Parameter.VAR_KEYWORD)


def _positional(signature: Signature) -> list[Parameter]:
    return [p for p in signature.parameters.values() if p.kind in _POSITIONAL]


def _optional(parameter: Parameter) -> bool:
    return parameter.default is not Parameter.empty


def _takes_any(signature: Signature, kind: object) -> bool:
    return any(p.kind is kind for p in signature.parameters.values())


def _has_room(signature: Signature, place: int) -> bool:
    """Whether a positional argument at `place` is accepted."""
    return place < len(_positional(signature)) or _takes_any(signature, Parameter.VAR_POSITIONAL)


def _default(parameter: Parameter) -> str:
    return "nothing" if parameter.default is Parameter.empty else repr(parameter.default)
