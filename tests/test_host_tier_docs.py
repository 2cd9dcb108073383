"""The page on host tiers says what is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from test_unwaited_tiers import PROTECTS_NOTHING

from conformance import HostTier
from conformance.contract import host_tiers
from conformance.programs import parse_program

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "host-tiers.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines()]


def test_every_clause_is_told_as_it_stands() -> None:
    told = [row for row in ROWS if len(row) == 4 and row[0].startswith("`")]
    assert told == [
        [f"`{c.id}`", c.level, "sim" if "simulated" in c.needs else "any", c.sentence]
        for c in host_tiers.CLAUSES
    ]


@pytest.mark.parametrize("clause", ["layer_is_complete_when_awaited", "rows_in_flight_are_kept"])
def test_messages_are_shown_as_printed(clause: str) -> None:
    message = (ROOT / "tests" / "messages" / f"{clause}.txt").read_text(encoding="utf-8")
    assert f"```\n{message}```\n" in PAGE


def test_declaration_declares_a_tier() -> None:
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    made: dict[str, Any] = {}
    exec(compile(snippet, "host-tiers.md", "exec"), made)
    assert [type(entry) for entry in made["pytest_kv_pools"]()][1:] == [HostTier]


def test_program_can_be_read() -> None:
    (program,) = re.findall(r"^```\n(write .*)\n```$", PAGE, re.M)
    assert str(parse_program(program)) == program


def test_waits_that_protect_nothing_somewhere_are_listed() -> None:
    table = PAGE.partition("| wait |")[2]
    listed = set(re.findall(r"`(\w+)`", table))
    assert listed == {point for _, point in PROTECTS_NOTHING}
