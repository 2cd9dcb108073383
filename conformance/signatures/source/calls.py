"""What the callers of a family pass: every call of its verbs in the scanned files."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature

from conformance.signatures.findings import Place
from conformance.signatures.source.dictionaries import Keys, keys_of
from conformance.signatures.source.facts import is_asked_for
from conformance.signatures.source.receivers import Receiver, Receivers
from conformance.signatures.source.scopes import Module, Scope, SourceClass
from conformance.signatures.source.sites import Around, Sites


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `verb` on `receiver`, by a method of the class `caller`, if it is one.

    `positional` counts arguments by position, None where `*args` are among them. `keywords`
    are always passed, `perhaps` only on a condition; `is_open` where a `**` argument hides
    what else is. `is_conditional` tells whether the call itself is made on a condition.
    """

    verb: str
    place: Place
    receiver: Receiver
    caller: SourceClass | None
    positional: int | None
    keywords: tuple[str, ...]
    perhaps: tuple[str, ...]
    is_open: bool
    is_conditional: bool

    def passes(self, keyword: str) -> bool:
        return keyword in self.keywords or keyword in self.perhaps

    def why_unbound(self, signature: Signature) -> str:
        """Why the call does not bind to `signature`, as Python says it; "" where it may."""
        given = [None] * (self.positional or 0)
        kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}
        named = dict.fromkeys((*self.keywords, *self.perhaps))
        if Parameter.VAR_KEYWORD in kinds.values():  # it takes the names of positional-only ones
            named = {n: None for n in named if kinds.get(n) is not Parameter.POSITIONAL_ONLY}
        hidden = self.positional is None or self.is_open
        try:
            signature.bind_partial(*given, **named) if hidden else signature.bind(*given, **named)
        except TypeError as error:
            return str(error)
        return ""


def calls_in(module: Module, verbs: Sequence[str], receivers: Receivers) -> list[Call]:
    """The calls of `verbs` that a module makes, in the order of its lines."""
    return sorted(_calls_in(module, verbs, receivers), key=lambda call: call.place)


def _calls_in(module: Module, verbs: Sequence[str], receivers: Receivers) -> Iterator[Call]:
    sites = Sites(module.lines_with(verbs))
    for scope in module.scopes:
        for node, around in sites.of(scope.body):
            match node.func:
                case ast.Attribute(value=value, attr=verb) if verb in verbs and not around.survives:
                    inner = scope.hiding(around.hidden)
                    receiver = receivers.of(value, inner, verb, around.facts)
                    yield _call(node, verb, receiver, inner, around)


def _call(node: ast.Call, verb: str, receiver: Receiver, scope: Scope, around: Around) -> Call:
    plain = [a for a in node.args if not isinstance(a, ast.Starred)]
    positional = len(plain) - receiver.takes_self if len(plain) == len(node.args) else None
    keys = Keys(tuple(k.arg for k in node.keywords if k.arg is not None))
    for keyword in node.keywords:
        if keyword.arg is None:
            keys = keys.joined(keys_of(keyword.value, scope))
    asked = [k for k in (*keys.always, *keys.sometimes) if is_asked_for(k, around.facts)]
    return Call(
        verb=verb,
        place=Place(scope.module.file.path, node.lineno),
        receiver=receiver,
        caller=scope.cls,
        positional=positional,
        keywords=tuple(k for k in keys.always if k not in asked),
        perhaps=tuple(k for k in keys.sometimes if k not in asked),
        is_open=keys.is_open or keys.is_rest or bool(asked),
        is_conditional=around.is_conditional,
    )
