"""Small packages written as text, and what a scan tells of them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from conformance.signatures.findings import Finding, Place, Scan
from conformance.signatures.source import scan

VERBS = ("get_cpu_copy", "load_cpu_copy", "move_kv_cache")
ROOT = "engine.pools:KVCache"

KEYWORD = "override_accepts_every_keyword"
POSITION = "override_binds_by_position"
NAMES = "override_keeps_names"
REQUIRES = "override_requires_nothing_more"
PAIR = "pair_accepts_the_same_keywords"
DEFAULTS = "override_keeps_defaults"
BINDS = "every_call_binds"
FORWARDED = "accepted_parameters_are_forwarded"
STUBS = "stubs_are_overridden"
COVERED = "every_subclass_is_covered"

POOLS = """
class KVCache:
    def get_cpu_copy(self, indices, mamba_indices=None):
        raise NotImplementedError

    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
        raise NotImplementedError

    def move_kv_cache(self, tgt_loc, src_loc):
        self.k_buffer[tgt_loc] = self.k_buffer[src_loc]
"""
MHA = """
from engine.pools import KVCache

class MHAPool(KVCache):
    def get_cpu_copy(self, indices, mamba_indices=None):
        return self.k_buffer[indices].cpu()

    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
        self.k_buffer[indices] = kv_cache_cpu
"""
DSA = """
from engine.pools import KVCache

class DSAPool(KVCache):
    def get_cpu_copy(self, indices):
        return self.index_k[indices].cpu()

    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
        self.index_k[indices] = kv_cache_cpu
"""
BODIES = """
class KVCache:
    def get_cpu_copy(self, indices, mamba_indices=None):
        return self.k_buffer[indices], mamba_indices

    def load_cpu_copy(self, kv_cache_cpu, indices, mamba_indices=None):
        self.k_buffer[indices] = kv_cache_cpu, mamba_indices

    def move_kv_cache(self, tgt_loc, src_loc):
        self.k_buffer[tgt_loc] = self.k_buffer[src_loc]
"""
"""A root that is no stub, and uses what it is given."""

IMPORTS = """
from typing import Annotated, ClassVar, Final, Generic, Optional, Protocol, TypeVar, Union
from engine.dsa import DSAPool
from engine.mha import MHAPool
from engine.pools import KVCache
"""
"""Above a scheduler that `calling` scans."""

Told = tuple[str, str, str, str, str]
"""Severity, clause, class without the package, verb and parameter."""


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Writes files below `folder`; text without the margin that it has in the test."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = textwrap.dedent(content).lstrip("\n").encode()
        path.write_bytes(content)


def scanned(
    folder: Path,
    files: Mapping[str, str | bytes] | None = None,
    *,
    pools: str = POOLS,
    root: str = ROOT,
    verbs: Iterable[str] = VERBS,
    trees: Iterable[str] = ("engine",),
) -> Scan:
    """The scan of a package `engine` with these files; `pools.py` holds its root."""
    write(folder / "engine", {"__init__.py": "", "pools.py": pools, **(files or {})})
    return scan(root, [str(folder / tree) for tree in trees], tuple(verbs))


def told(scan: Scan, *clauses: str) -> list[Told]:
    """What a scan tells, in its order; of some clauses, or of all."""
    return [
        (f.severity, f.clause, f.cls.removeprefix("engine."), f.verb, f.parameter)
        for f in scan.findings
        if not clauses or f.clause in clauses
    ]


def errors(scan: Scan) -> list[Told]:
    return [finding for finding in told(scan) if finding[0] == "error"]


def the_one(scan: Scan, clause: str, verb: str = "") -> Finding:
    """The only finding of a clause, on one verb where it is given."""
    (finding,) = (f for f in scan.findings if f.clause == clause and verb in ("", f.verb))
    return finding


def at(place: Place) -> str:
    return f"{place.path.name}:{place.line}"


def callers(finding: Finding) -> list[str]:
    return [at(place) for place in finding.callers]


def classes(scan: Scan) -> list[str]:
    return [name.removeprefix("engine.") for name in scan.classes]


def signature(scan: Scan, cls: str, verb: str = "get_cpu_copy") -> str:
    """The text of a signature, of a class without the package in front."""
    return str(scan.methods[f"engine.{cls}"][verb])


def calling(folder: Path, scheduler: str, pools: str = BODIES, **files: str) -> Scan:
    """The scan of a right and a wrong pool and of a scheduler, with its imports above."""
    source = IMPORTS.lstrip() + textwrap.dedent(scheduler).lstrip("\n")
    more = {f"{name}.py": text for name, text in files.items()}
    return scanned(
        folder, {"mha.py": MHA, "dsa.py": DSA, "scheduler.py": source, **more}, pools=pools
    )


def dropped(scan: Scan) -> Finding:
    """The finding on the keyword that `DSAPool` drops."""
    return the_one(scan, KEYWORD)
