"""What the callers of a family pass: every call of its verbs in the scanned files."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import Signature

from conformance.signatures.findings import Place
from conformance.signatures.source.modules import Module, Scope, SourceClass
from conformance.signatures.source.receivers import Receivers


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `verb`.

    `positional` counts arguments by position, None where `*args` are among them. `keywords`
    are always passed, `perhaps` only on a condition (out of a `**` dictionary that is filled
    on one); `is_open` where a `**` argument hides what else is. `is_conditional` tells
    whether the call itself is made on a condition.

    `owners` are the dotted names of the classes whose method may run, None where the
    receiver cannot be decided ("maybe"); `instances` those that the receiver may be an
    instance of, which is sure where no annotation had to be believed; `binds_on` those on
    whose method the call is tried. `attribute` is the attribute of `self` that the receiver
    is, `caller` the class whose method calls.
    """

    verb: str
    place: Place
    positional: int | None
    keywords: tuple[str, ...]
    perhaps: tuple[str, ...]
    is_open: bool
    is_conditional: bool
    owners: frozenset[str] | None
    instances: frozenset[str]
    binds_on: frozenset[str]
    is_sure: bool
    attribute: str
    caller: SourceClass | None

    def passes(self, keyword: str) -> bool:
        return keyword in self.keywords or keyword in self.perhaps

    def why_unbound(self, signature: Signature) -> str:
        """Why the call does not bind to `signature`, as Python says it; "" where it may."""
        given = [None] * (self.positional or 0)
        named = dict.fromkeys((*self.keywords, *self.perhaps))
        hidden = self.positional is None or self.is_open
        try:
            signature.bind_partial(*given, **named) if hidden else signature.bind(*given, **named)
        except TypeError as error:
            return str(error)
        return ""


def calls_in(module: Module, verbs: Sequence[str], receivers: Receivers) -> Iterator[Call]:
    """The calls of `verbs` that a module makes, in the order of its lines."""
    found = [
        _call(node, node.func, scope, receivers, conditional)
        for scope, statement in module.statements_with(verbs)
        for node, conditional in _calls_below(statement, conditional=False)
        if isinstance(node.func, ast.Attribute) and node.func.attr in verbs
    ]
    yield from sorted(found, key=lambda call: call.place)


def _call(
    node: ast.Call, function: ast.Attribute, scope: Scope, receivers: Receivers, conditional: bool
) -> Call:
    receiver = receivers.of(function.value, scope, function.attr)
    plain = [a for a in node.args if not isinstance(a, ast.Starred)]
    positional = len(plain) - receiver.takes_self if len(plain) == len(node.args) else None
    keywords = [k.arg for k in node.keywords if k.arg is not None]
    perhaps: list[str] = []
    is_open = False
    for keyword in node.keywords:
        if keyword.arg is None:
            always, sometimes, is_known = unpacked(keyword.value, scope)
            keywords += always
            perhaps += sometimes
            is_open = is_open or not is_known
    return Call(
        verb=function.attr,
        place=Place(scope.module.file.path, node.lineno),
        positional=positional,
        keywords=tuple(keywords),
        perhaps=tuple(perhaps),
        is_open=is_open,
        is_conditional=conditional,
        owners=receiver.owners,
        instances=receiver.instances,
        binds_on=receiver.binds_on,
        is_sure=receiver.is_sure,
        attribute=receiver.attribute,
        caller=scope.cls,
    )


def unpacked(value: ast.expr, scope: Scope) -> tuple[list[str], list[str], bool]:
    """The keys of a dictionary behind `**`: always there, sometimes, and whether these are
    all that there may be."""
    match value:
        case ast.Dict(keys=keys) if all(isinstance(k, ast.Constant) for k in keys):
            return [str(k.value) for k in keys if isinstance(k, ast.Constant)], [], True
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=named):
            known = all(k.arg for k in named)
            return [k.arg for k in named if k.arg], [], known
        case ast.IfExp(body=one, orelse=other):
            first, second = unpacked(one, scope), unpacked(other, scope)
            both = [k for k in first[0] if k in second[0]]
            some = [k for part in (*first[:2], *second[:2]) for k in part if k not in both]
            return both, some, first[2] and second[2]
        case ast.Name(id=name) if scope.function is not None and name in scope.names:
            return _filled(name, scope)
    return [], [], False


def _filled(name: str, scope: Scope) -> tuple[list[str], list[str], bool]:
    """The keys of a local dictionary: those of its displays, and those assigned later."""
    always: list[str] = []
    sometimes: list[str] = []
    known = all(isinstance(b, ast.expr | ast.AnnAssign) for b in scope.names[name])
    for bound in scope.names[name]:
        value = bound.value if isinstance(bound, ast.AnnAssign) else bound
        if isinstance(value, ast.Dict | ast.Call | ast.IfExp):
            found = unpacked(value, scope)
            (always if len(scope.names[name]) == 1 else sometimes).extend(found[0])
            sometimes += found[1]
            known = known and found[2]
        else:
            known = False
    for node in (n for statement in scope.body for n in ast.walk(statement)):
        match node:
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=there), slice=ast.Constant(value=key))]
            ) if there == name:
                sometimes.append(str(key))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=there), attr="update")) if (
                there == name
            ):
                known = False
    return always, [k for k in sometimes if k not in always], known


_BRANCHES = (ast.If, ast.IfExp, ast.BoolOp, ast.For, ast.While, ast.Try, ast.Match)
_INNER = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _calls_below(node: ast.AST, *, conditional: bool) -> Iterator[tuple[ast.Call, bool]]:
    """The calls in a statement, and whether each is made on a condition; those in inner
    scopes are left out."""
    if isinstance(node, _INNER):
        for decorator in node.decorator_list:
            yield from _calls_below(decorator, conditional=conditional)
        return
    if isinstance(node, ast.Call):
        yield node, conditional
    inside = conditional or isinstance(node, _BRANCHES)
    for child in ast.iter_child_nodes(node):
        yield from _calls_below(child, conditional=inside)
