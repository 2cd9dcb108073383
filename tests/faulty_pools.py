"""Pools that end their process, lose their device or skip a reload when `FAULT` says so, as
a downstream declares them; and what is kept of their failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CLASSES = """
import os
from pathlib import Path

from conformance import Allocator
from reference_pools.allocators import PagedAllocator

FAULT = os.environ.get("FAULT", "")
LOST = []

class Ends(TokenPool):
    def load_cpu_copy(self, *given, **named):
        if FAULT == "ends":
            os._exit(3)
        super().load_cpu_copy(*given, **named)

class Sticky(TokenPool):
    def __init__(self, *given, **named):
        if LOST:
            raise RuntimeError("the fault sticks")
        super().__init__(*given, **named)

    def get_cpu_copy(self, indices, *given, **named):
        if FAULT == "sticks":
            with Path("calls").open("a") as calls:
                calls.write(f"{len(indices)} ")
            if LOST or len(indices) >= 3:
                LOST.append(1)
                raise RuntimeError("the fault sticks")
        return super().get_cpu_copy(indices, *given, **named)

class Raises(TokenPool):
    def get_cpu_copy(self, indices, *given, **named):
        if FAULT == "raises" and len(indices) >= 3:
            raise RuntimeError("only three or more")
        return super().get_cpu_copy(indices, *given, **named)

class Picky(TokenPool):
    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        if FAULT == "picky" and self.page_size != 5:
            raise RuntimeError("only pages of five")

class Skips(TokenPool):
    def load_cpu_copy(self, copy, indices, *given, **named):
        if FAULT != "skips":
            super().load_cpu_copy(copy, indices, *given, **named)

class Leaks(PagedAllocator):
    def free(self, ids, *given, **named):
        if FAULT != "leaks":
            super().free(ids, *given, **named)

def pool(cls, **more):
    return Pool(cls.__name__.lower(), partial(make_token, cls=cls), kind="token", **more)
"""
SAME_ROWS = "test_reload_restores_the_same_rows"
SIZES = (
    "size=25 page_size=5 layers=3 first_layer=1 dtype=bfloat16 chunk_tokens=8192 "
    "heads=7 head_dim=8 v_head_dim=11"
)
TRIP = f"{SIZES} | write r0 at 5; offload r0 as c0; overwrite; reload c0 at 5"
ALONE = "--kv-replay"

Session = Callable[..., pytest.RunResult]


def session_of(downstream: Any, monkeypatch: pytest.MonkeyPatch) -> Session:
    """`session(entries, *options, fault="")`: one run of one check of pools with that fault."""

    def run(entries: str, *options: str, fault: str = "", **more: Any) -> pytest.RunResult:
        monkeypatch.setenv("FAULT", fault)
        if ALONE not in options and "-k" not in options:
            options = ("-k", SAME_ROWS, *options)
        result: pytest.RunResult = downstream(entries, *options, classes=CLASSES, **more)
        return result

    return run


def kept(pytester: pytest.Pytester) -> list[dict[str, Any]]:
    path = pytester.path / ".pytest_cache" / "v" / "kv" / "failures"
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    return found


def keep(pytester: pytest.Pytester, *records: dict[str, Any]) -> None:
    path = pytester.path / ".pytest_cache" / "v" / "kv" / "failures"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(records), "utf-8")


def record(check: str = SAME_ROWS, pool: str = "skips", **changes: Any) -> dict[str, Any]:
    return {
        "node": f"test_kv.py::{check}[{pool}]",
        "check": check,
        "pool": pool,
        "clause": check.removeprefix("test_"),
        "replay": TRIP,
        "found": "bytes of nobody",
        "crashed": False,
        "first_seen": "2025-01-31",
        **changes,
    }


def journals(pytester: pytest.Pytester) -> list[Path]:
    return sorted((pytester.path / ".pytest_cache" / "d" / "kv").glob("running-*"))


def answers(result: pytest.RunResult) -> list[str]:
    """What the section on the replay says."""
    at = next(i for i, line in enumerate(result.outlines) if " kv replay " in line)
    section = result.outlines[at + 1 :]
    end = next(i for i, line in enumerate(section) if line.startswith("=") or " in " in line)
    return section[:end]
