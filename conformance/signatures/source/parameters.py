"""`inspect.Signature` objects made from source, equal to those of the running code."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import Parameter, Signature

from conformance.signatures.source.bindings import Function, last_name


@dataclass(frozen=True, slots=True, eq=False)
class Unevaluated:
    """A default that only running the code could tell. It differs from another only where
    that is sure: two names do whose last parts differ; one name may stand for any value."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        is_name = self.text.replace(".", "").isidentifier()
        if not isinstance(other, Unevaluated):
            return is_name
        return self.text.rpartition(".")[2] == other.text.rpartition(".")[2]

    def __hash__(self) -> int:
        return 0


def signature_of(function: Function) -> Signature:
    """The signature as callers see it: without `self` or `cls`, without annotations."""
    return of_arguments(function.args, bound=not is_static(function))


def of_arguments(arguments: ast.arguments, *, bound: bool) -> Signature:
    """The signature of these arguments, without the first one where it is `bound`."""
    parameters = list(_parameters(arguments))
    takes_self = bound and parameters and parameters[0].kind in _BY_POSITION
    return Signature(parameters[1:] if takes_self else parameters)


def is_static(function: Function) -> bool:
    return any(last_name(d) == "staticmethod" for d in function.decorator_list)


def takes_instance(function: Function) -> bool:
    """Whether the first argument is an instance where the function is called of a class."""
    return not any(last_name(d) in ("staticmethod", "classmethod") for d in function.decorator_list)


def is_property(function: Function) -> bool:
    names = ("property", "cached_property", "abstractproperty")
    return any(last_name(d) in names for d in function.decorator_list)


def default_of(expression: ast.expr) -> object:
    """The value of a literal, else its text."""
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Unevaluated(ast.unparse(expression))


_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _parameters(arguments: ast.arguments) -> Iterator[Parameter]:
    places = [*arguments.posonlyargs, *arguments.args]
    required = len(places) - len(arguments.defaults)
    for place, argument in enumerate(places):
        kind = _BY_POSITION[place >= len(arguments.posonlyargs)]
        default = arguments.defaults[place - required] if place >= required else None
        yield _parameter(argument.arg, kind, default)
    if arguments.vararg:
        yield Parameter(arguments.vararg.arg, Parameter.VAR_POSITIONAL)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument.arg, Parameter.KEYWORD_ONLY, default)
    if arguments.kwarg:
        yield Parameter(arguments.kwarg.arg, Parameter.VAR_KEYWORD)


def _parameter(name: str, kind: inspect._ParameterKind, default: ast.expr | None) -> Parameter:
    value = Parameter.empty if default is None else default_of(default)
    return Parameter(name, kind, default=value)
