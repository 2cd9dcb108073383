"""The `__init__` that `dataclasses.dataclass` makes, from the fields of a class."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from inspect import Parameter, Signature

from conformance.signatures.source.bindings import last_name
from conformance.signatures.source.parameters import Unevaluated, default_of
from conformance.signatures.source.scopes import SourceClass


def makes_init(cls: SourceClass) -> bool:
    """Whether `cls` itself is decorated, and is given an `__init__`."""
    return any(not _is_false(_keyword(d, "init")) for d in _decorators(cls))


def _decorators(cls: SourceClass) -> list[ast.expr]:
    return [d for d in cls.node.decorator_list if last_name(d) == "dataclass"]


def init_of(line: Sequence[SourceClass]) -> Signature:
    """The signature, without `self`, of the class that `line` begins with. Fields of bases
    come first, a field keeps the place of its first definition, keyword-only ones go last.
    `ValueError` for fields in an order that `dataclass` refuses too."""
    fields: dict[str, Parameter] = {}
    for cls in reversed(line):
        if _decorators(cls):
            fields |= {p.name: p for p in _fields(cls)}
    places = [p for p in fields.values() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    names = [p for p in fields.values() if p.kind is Parameter.KEYWORD_ONLY]
    return Signature([*places, *names])


def _fields(cls: SourceClass) -> Iterator[Parameter]:
    by_keyword = any(_is_true(_keyword(d, "kw_only")) for d in _decorators(cls))
    for statement in cls.node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                kind = _annotated(annotation)
                if kind == "KW_ONLY":
                    by_keyword = True
                elif kind != "ClassVar" and not _is_false(_keyword(value, "init")):
                    yield _parameter(name, value, by_keyword)


def _parameter(name: str, value: ast.expr | None, by_keyword: bool) -> Parameter:
    default: object = Parameter.empty
    if value is not None:
        default = default_of(value)
        if last_name(value) == "field":
            if given := _keyword(value, "kw_only"):
                by_keyword = _is_true(given)
            given, made = _keyword(value, "default"), _keyword(value, "default_factory")
            default = default_of(given) if given else Parameter.empty
            default = Unevaluated("<factory>") if made else default
    kind = Parameter.KEYWORD_ONLY if by_keyword else Parameter.POSITIONAL_OR_KEYWORD
    return Parameter(name, kind, default=default)


def _annotated(annotation: ast.expr) -> str:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value.partition("[")[0].rpartition(".")[2].strip()
    return last_name(annotation.value if isinstance(annotation, ast.Subscript) else annotation)


def _keyword(call: ast.expr | None, name: str) -> ast.expr | None:
    if not isinstance(call, ast.Call):
        return None
    return next((k.value for k in call.keywords if k.arg == name), None)


def _is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _is_false(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is False
