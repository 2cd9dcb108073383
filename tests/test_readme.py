"""What the README shows is what is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from reference_pools.broken import faults

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "clause",
    [
        "move_carries_companions",
        "shared_ids_outlive_one_owner",
        "companions_travel",
        "override_accepts_every_keyword",
    ],
)
def test_readme_shows_the_message(clause: str) -> None:
    message = (ROOT / "tests" / "messages" / f"{clause}.txt").read_text(encoding="utf-8")
    assert message in README


def test_readme_counts_the_faults() -> None:
    assert f"holds {len(faults())} public faults" in README
