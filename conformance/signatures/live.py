"""The members of a family that can be imported, by `inspect`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from inspect import Parameter, Signature

from conformance.signatures.members import Member, Method


def member_of(cls: type, root: type, verbs: Sequence[str]) -> Member:
    """`cls` as the rules see it; its methods that are the root's own are inherited."""
    methods = {verb: (_method(cls, root, verb),) for verb in verbs if hasattr(root, verb)}
    return Member(qualified(cls), methods, is_abstract=inspect.isabstract(cls))


def qualified(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def signature_of(cls: type, verb: str) -> Signature:
    """The signature of `cls.verb` as its callers see it: without `self` or `cls`."""
    bound = isinstance(inspect.getattr_static(cls, verb), staticmethod | classmethod)
    signature = inspect.signature(getattr(cls, verb))
    parameters = list(signature.parameters.values())
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    takes_self = not bound and parameters and parameters[0].kind in positional
    return signature.replace(parameters=parameters[1:]) if takes_self else signature


def _method(cls: type, root: type, verb: str) -> Method:
    found = getattr(cls, verb)
    owner = next((qualified(base) for base in cls.__mro__ if verb in vars(base)), qualified(cls))
    inherited = cls is not root and found is getattr(root, verb)
    if not callable(found):
        return Method(None, owner, problem=f"is {found!r}, not a method", inherited=inherited)
    return Method(signature_of(cls, verb), owner, inherited=inherited)
