"""What the documents say of the contract is what the contract says."""

from __future__ import annotations

from pathlib import Path

from conformance.contract import CLAUSES

DOCS = Path(__file__).parent.parent / "docs"


def test_page_on_signatures_has_every_clause_as_it_stands() -> None:
    lines = (DOCS / "signatures.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("| `")]
    told = {row[1].strip("`"): row[2] for row in rows if row[1].strip("`") in CLAUSES}
    signatures = {c.id: c.sentence for c in CLAUSES.values() if c.subject == "signatures"}
    assert told == signatures


def test_page_on_the_simulated_device_has_every_clause_that_needs_it() -> None:
    lines = (DOCS / "simdevice.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("| `")]
    told = {row[1].strip("`"): row[2] for row in rows if row[1].strip("`") in CLAUSES}
    needing = {c.id: c.level for c in CLAUSES.values() if "simulated" in c.needs}
    assert told == needing
