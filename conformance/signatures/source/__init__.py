"""Families read from source code: nothing of a scanned package is imported or executed."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from conformance.signatures.findings import Scan
from conformance.signatures.source.family import SourceFamily
from conformance.signatures.source.judge import findings_of

__all__ = ["scan"]


def scan(root: str, trees: Sequence[str], verbs: Sequence[str]) -> Scan:
    """Check the family of `root` (`module:Class`) in `trees`, paths or package names.

    `verbs` are offload and reload, in this order, then others. Raises `ScanError` for a root
    or a tree that is not there.
    """
    with _collecting_later():
        family = SourceFamily.read(root, trees, verbs)
        classes = family.hierarchy.family
        members = [family.root, *map(family.member, classes)]
        return Scan(
            root=family.root.dotted,
            verbs=tuple(verbs),
            classes=tuple(dict.fromkeys(cls.dotted for cls in classes)),
            findings=tuple(findings_of(family)),
            files=len(family.modules.files),
            parsed=len(family.modules.parsed),
            methods={
                member.dotted: {
                    verb: method.signature
                    for verb, every in member.methods.items()
                    for method in every
                    if method.signature is not None
                }
                for member in members
            },
            abstract=frozenset(member.dotted for member in members if member.is_abstract),
        )


@contextmanager
def _collecting_later() -> Iterator[None]:
    """Syntax trees are many objects and no garbage: the collector would double the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
