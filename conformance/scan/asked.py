"""Refusals of what was asked for that only a scan can tell."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from difflib import get_close_matches

from conformance.scan.arguments import Arguments
from conformance.signatures.findings import Scan, ScanError


def refuse_empty(scans: Sequence[Scan], trees: Sequence[str]) -> None:
    """Raise `ScanError` where no scan found a class under the root: nothing was checked."""
    if any(scan.classes for scan in scans):
        return
    scan = scans[-1]
    doubts = [f.cls for f in scan.findings if f.clause == "every_subclass_is_covered"]
    more = f" Source does not tell whether {', '.join(doubts)} belongs to it." if doubts else ""
    raise ScanError(
        f"no class under {scan.root} is in {', '.join(trees)}: nothing was checked.{more} "
        "Is --root the class at the top of the family, and are its subclasses in these paths?"
    )


def refuse_unknown_verbs(arguments: Arguments, scans: Sequence[Scan], trees: Sequence[str]) -> None:
    """Raise `ScanError` for a verb that was given and that the root of no scan has."""
    for verb in arguments.demanded[2:]:  # the scan itself needs the first two
        if not any(verb in scan.methods.get(scan.root, {}) for scan in scans):
            raise ScanError(f"--verbs: {_why_unknown(verb, arguments.root, trees)}")


def _why_unknown(verb: str, root: str, trees: Sequence[str]) -> str:
    names = _names_of_root(root, trees)
    if verb in names:
        return f"source does not tell the signature of {verb} of root {root}"
    methods = sorted(name for name, is_method in names.items() if is_method)
    near = get_close_matches(verb, methods, n=3)
    public = [name for name in methods if not name.startswith("_")]
    it_has = ", ".join(near or public or ["no methods"])
    return f"root {root} has no method {verb!r}; {'near is' if near else 'it has'} {it_has}"


def _names_of_root(root: str, trees: Sequence[str]) -> dict[str, bool]:
    """What the root and its bases bind in their bodies, and whether it is a method."""
    from conformance.signatures.source.family import SourceFamily

    hierarchy = SourceFamily.read(root, trees, ()).hierarchy
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        name: any(isinstance(each, functions) for each in bound)
        for line in hierarchy.lines(hierarchy.roots[0])
        for base in reversed(line)
        for name, bound in base.body.names.items()
    }
