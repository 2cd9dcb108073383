"""GitHub's workflow commands: each finding becomes a remark on its line of a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.scan.checked import Checked
from conformance.scan.formats.words import (
    callers,
    got_worse,
    one_line,
    relative,
    stale,
    subject,
    summary,
    where,
)
from conformance.signatures.findings import Finding, Severity

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}


def render(checked: Checked) -> str:
    """One command a finding that is not accepted, then the summary as plain text."""
    commands = [*(_finding(checked, finding) for finding in checked.open), *_stale(checked)]
    return "\n".join([*commands, summary(checked)]) + "\n"


def _finding(checked: Checked, finding: Finding) -> str:
    told = [f"{subject(finding)}: {one_line(finding.text)}", got_worse(checked, finding)]
    told += [f"{does} at {where(place, checked.base)}" for does, place in callers(finding)]
    message = "\n".join(filter(None, told))
    path, _ = relative(finding.place.path, checked.base)
    return command(
        _COMMANDS[finding.severity],
        message,
        file=path,
        line=str(finding.place.line),
        title=finding.clause,
    )


def _stale(checked: Checked) -> Iterator[str]:
    if checked.baseline:
        path, _ = relative(checked.baseline.path, checked.base)
        for entry in checked.stale:
            yield command("error", stale(entry), file=path, title="stale baseline entry")


def command(name: str, message: str, **properties: str) -> str:
    """One command on one line, whatever is in its message and its properties."""
    words = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {words}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
