"""Scans made by hand, with ordinary and with hostile names."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

from conformance.signatures.findings import Finding, Place, Scan

BASE = Path("/repo")
VERBS = ("get_cpu_copy", "load_cpu_copy", "move_kv_cache")
ROOT = "pkg.pools.KVCache"
KEYWORD = "override_accepts_every_keyword"
NAMES = "override_keeps_names"

HOSTILE = "a|b`c`\n::error::x,y:z 100% <b>&amp; é*_d_ @name #12 [l](u) \\ \r%0A$m$ \udcff"


def finding(**changes: Any) -> Finding:
    values: dict[str, Any] = {
        "clause": KEYWORD,
        "severity": "error",
        "cls": "pkg.dsa.DSAPool",
        "verb": "get_cpu_copy",
        "parameter": "mamba_indices",
        "text": "get_cpu_copy(indices) does not accept mamba_indices=, which KVCache does",
        "place": Place(BASE / "pkg" / "dsa.py", 12),
        "callers": (Place(BASE / "pkg" / "scheduler.py", 88),),
    }
    return Finding(**(values | changes))


ERROR = finding()
WARNING = finding(severity="warning", verb="load_cpu_copy", parameter="req", callers=())
NOTE = finding(
    clause=NAMES,
    severity="note",
    parameter="indices",
    text="get_cpu_copy(rows) has no parameter named indices",
    callers=(),
)
HOSTILE_FINDING = finding(
    clause=HOSTILE,
    cls=HOSTILE,
    verb=HOSTILE,
    parameter=HOSTILE,
    text=HOSTILE,
    place=Place(BASE / f"sp ace {HOSTILE}.py", 3),
    callers=(Place(Path("/elsewhere") / f"{HOSTILE}.py", 4),),
)
EVERYTHING = (ERROR, WARNING, NOTE)


def scan(*findings: Finding, **changes: Any) -> Scan:
    values: dict[str, Any] = {
        "root": ROOT,
        "verbs": VERBS,
        "classes": ("pkg.dsa.DSAPool", "pkg.mha.MHAPool"),
        "findings": findings,
        "files": 4719,
        "parsed": 31,
    }
    return Scan(**(values | changes))


def signature(*required: str, **optional: Any) -> Signature:
    """`signature("indices", mamba_indices=None)`; `kw` stands for `**kw`."""
    kind = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter(name, kind) for name in required if name != "kw"]
    parameters += [Parameter(name, kind, default=value) for name, value in optional.items()]
    if "kw" in required:
        parameters.append(Parameter("kw", Parameter.VAR_KEYWORD))
    return Signature(parameters)


def methods(**of: Signature) -> Mapping[str, Signature]:
    return of
