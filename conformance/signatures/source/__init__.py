"""Families read from source code: nothing of a scanned package is imported or executed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import Signature

from conformance.signatures.findings import Scan
from conformance.signatures.members import Member
from conformance.signatures.source.family import SourceFamily
from conformance.signatures.source.judge import findings_of

__all__ = ["scan"]


def scan(root: str, trees: Sequence[str], verbs: Sequence[str]) -> Scan:
    """Check the family of `root` (`module:Class`) in `trees`, paths or package names.

    `verbs` are offload and reload, in this order, then others. Raises `ScanError` for a root
    or a tree that is not there.
    """
    with _for_trees():
        return _scanned(root, trees, verbs)


def _scanned(root: str, trees: Sequence[str], verbs: Sequence[str]) -> Scan:
    family = SourceFamily.read(root, trees, verbs)
    try:
        return _result(family)
    finally:
        family.modules.release()


def _result(family: SourceFamily) -> Scan:
    classes = family.hierarchy.family
    members = [family.root, *map(family.member, classes)]
    return Scan(
        root=family.root.dotted,
        verbs=family.verbs,
        classes=tuple(dict.fromkeys(cls.dotted for cls in classes)),
        findings=tuple(findings_of(family)),
        files=len(family.modules.files),
        parsed=len(family.modules.parsed),
        methods={member.dotted: dict(_signatures(member)) for member in members},
        abstract=frozenset(member.dotted for member in members if member.is_abstract),
    )


def _signatures(member: Member) -> Iterator[tuple[str, Signature]]:
    for verb, methods in member.methods.items():
        for method in methods:
            if method.signature is not None:
                yield verb, method.signature


@contextmanager
def _for_trees() -> Iterator[None]:
    """Syntax trees are many objects and no garbage: the collector would double the time. They
    are as deep as the longest sum or `elif` chain of a file."""
    was_on, limit = gc.isenabled(), sys.getrecursionlimit()
    gc.disable()
    sys.setrecursionlimit(max(limit, 20_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        if was_on:
            gc.enable()
