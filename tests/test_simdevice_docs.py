"""Every snippet of the device's page runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from simdevice_device import sim_device  # noqa: F401  (each test has the device)

PAGE = Path(__file__).parent.parent / "docs" / "simdevice.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def test_snippets_were_found() -> None:
    assert len(SNIPPETS) == 6


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippet_runs(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(SNIPPETS[number], f"{PAGE}:{number}", "exec"), {})
    printed = capsys.readouterr().out
    if "print(" in SNIPPETS[number]:
        assert printed.startswith("`copy to host` queued at ")
        assert "on stream 0 had not finished; synchronize stream 0" in printed
