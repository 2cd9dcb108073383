"""Rules that compare the signature of an override with that of its root, by `inspect`.

Each rule yields one sentence per problem. They rest on substitutability: a call that is
legal on the root is legal on every subclass (Liskov and Wing, 1994). A keyword that is
missing altogether is told by `accepts_every_keyword` alone, not by the other rules too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter, Signature

Rule = Callable[[type, type, Sequence[str]], Iterator[str]]

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_KEYWORD = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def signature_of(cls: type, verb: str) -> Signature:
    """The signature of `cls.verb` as its callers see it: without `self` or `cls`."""
    bound = isinstance(inspect.getattr_static(cls, verb), staticmethod | classmethod)
    signature = inspect.signature(getattr(cls, verb))
    parameters = list(signature.parameters.values())
    takes_self = not bound and parameters and parameters[0].kind in _POSITIONAL
    return signature.replace(parameters=parameters[1:]) if takes_self else signature


def accepts_every_keyword(root: type, cls: type, verbs: Sequence[str]) -> Iterator[str]:
    """Every optional parameter of the root can be passed by keyword to the override."""
    for verb in verbs:
        if hasattr(root, verb) and not callable(getattr(cls, verb)):
            yield f"{verb} is {getattr(cls, verb)!r}, not a method"
    for verb, ours, theirs in _pairs(root, cls, verbs):
        for name, parameter in ours.parameters.items():
            optional = parameter.default is not Parameter.empty and parameter.kind in _KEYWORD
            if optional and not _takes_keyword(theirs, name):
                yield f"{verb}{theirs} does not accept {name}=, which {root.__name__} does"


def binds_by_position(root: type, cls: type, verbs: Sequence[str]) -> Iterator[str]:
    """A positional argument of the root reaches the parameter of the same meaning."""
    for verb, ours, theirs in _pairs(root, cls, verbs):
        places = {p.name: i for i, p in enumerate(_positional(theirs))}
        room = len(places)
        for place, parameter in enumerate(_positional(ours)):
            name = parameter.name
            missing = parameter.default is not Parameter.empty and not _takes_keyword(theirs, name)
            if places.get(name, place) != place:
                yield (
                    f"{verb}{theirs}: positional argument {place + 1} is {name} on "
                    f"{root.__name__}, here {name} is argument {places[name] + 1}"
                )
            elif name not in places and place < room and _optional(parameter) and not missing:
                other = _positional(theirs)[place].name
                yield (
                    f"{verb}{theirs}: positional argument {place + 1} is {name} on "
                    f"{root.__name__}, here it is {other}"
                )
            elif place >= room and not missing and not _takes_any(theirs, Parameter.VAR_POSITIONAL):
                yield f"{verb}{theirs} takes {room} positional arguments, {name} is one more"


def requires_nothing_more(root: type, cls: type, verbs: Sequence[str]) -> Iterator[str]:
    """Every required parameter of the override is filled by a call with the root's."""
    for verb, ours, theirs in _pairs(root, cls, verbs):
        filled = [p for p in _positional(ours) if p.default is Parameter.empty]
        keywords = {n for n, p in ours.parameters.items() if p.default is Parameter.empty}
        for place, parameter in enumerate(theirs.parameters.values()):
            if parameter.default is not Parameter.empty or parameter.kind in (
                Parameter.VAR_POSITIONAL,
                Parameter.VAR_KEYWORD,
            ):
                continue
            by_place = parameter.kind in _POSITIONAL and place < len(filled)
            if not by_place and parameter.name not in keywords:
                yield f"{verb}{theirs} requires {parameter.name}, which {root.__name__} does not"


def pair_agrees(root: type, cls: type, verbs: Sequence[str]) -> Iterator[str]:
    """A keyword added to one of offload and reload (the first two verbs) is on the other."""
    if not all(callable(getattr(cls, verb)) for verb in verbs[:2]):
        return
    pair = [(verb, signature_of(cls, verb)) for verb in verbs[:2]]
    for (verb, has), (other, lacks) in (pair, pair[::-1]):
        inherited = signature_of(root, verb).parameters
        for name, parameter in has.parameters.items():
            added = name not in inherited and parameter.default is not Parameter.empty
            if added and not _takes_keyword(lacks, name):
                yield f"{verb}{has} accepts {name}=, {other}{lacks} does not"


def keeps_names(root: type, cls: type, verbs: Sequence[str]) -> Iterator[str]:
    """Required parameters can be passed by the names that they have on the root."""
    for verb, ours, theirs in _pairs(root, cls, verbs):
        for name, parameter in ours.parameters.items():
            required = parameter.default is Parameter.empty and parameter.kind in _KEYWORD
            if required and not _takes_keyword(theirs, name):
                yield f"{verb}{theirs} has no parameter named {name}, as on {root.__name__}"


def keeps_defaults(root: type, cls: type, verbs: Sequence[str]) -> Iterator[str]:
    """An optional parameter has the default that it has on the root."""
    for verb, ours, theirs in _pairs(root, cls, verbs):
        for name, parameter in ours.parameters.items():
            other = theirs.parameters.get(name)
            optional = parameter.default is not Parameter.empty
            if optional and other is not None and other.default != parameter.default:
                yield (
                    f"{verb}{theirs}: {name} defaults to {_default(other)}, on "
                    f"{root.__name__} to {parameter.default!r}"
                )


RULES: dict[str, Rule] = {
    "override_accepts_every_keyword": accepts_every_keyword,
    "override_binds_by_position": binds_by_position,
    "override_requires_nothing_more": requires_nothing_more,
    "pair_accepts_the_same_keywords": pair_agrees,
    "override_keeps_names": keeps_names,
    "override_keeps_defaults": keeps_defaults,
}
"""The rule behind each signature clause."""


def _pairs(
    root: type, cls: type, verbs: Sequence[str]
) -> Iterator[tuple[str, Signature, Signature]]:
    """Each verb that `cls` overrides: the root's signature and its own."""
    for verb in verbs:
        method = getattr(cls, verb, None)
        if hasattr(root, verb) and callable(method) and method is not getattr(root, verb):
            yield verb, signature_of(root, verb), signature_of(cls, verb)


def _positional(signature: Signature) -> list[Parameter]:
    return [p for p in signature.parameters.values() if p.kind in _POSITIONAL]


def _optional(parameter: Parameter) -> bool:
    return parameter.default is not Parameter.empty


def _takes_any(signature: Signature, kind: object) -> bool:
    return any(p.kind is kind for p in signature.parameters.values())


def _takes_keyword(signature: Signature, name: str) -> bool:
    parameter = signature.parameters.get(name)
    named = parameter is not None and parameter.kind in _KEYWORD
    return named or _takes_any(signature, Parameter.VAR_KEYWORD)


def _default(parameter: Parameter) -> str:
    return "nothing" if parameter.default is Parameter.empty else repr(parameter.default)
