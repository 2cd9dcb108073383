"""A scan beside its baseline: what every format shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance.scan.baseline import Baseline, Entry
from conformance.signatures.findings import SEVERITIES, Finding, Scan, Severity


@dataclass(frozen=True, slots=True)
class Checked:
    """A scan and the baseline that accepts some of its findings, where one is given.

    Paths below `base` are shown relative to it, others absolute.
    """

    scan: Scan
    baseline: Baseline | None = None
    base: Path | None = None

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings of one severity that are not accepted, in the scan's order."""
        return tuple(f for f in self.scan.of(severity) if self.reason(f) is None)

    @property
    def open(self) -> tuple[Finding, ...]:
        """The findings that are not accepted, errors first."""
        return tuple(finding for severity in SEVERITIES for finding in self.of(severity))

    @property
    def accepted(self) -> tuple[tuple[Finding, str], ...]:
        """The accepted findings, errors first, each with its reason."""
        return tuple(self._accepted())

    @property
    def stale(self) -> tuple[Entry, ...]:
        """The entries of the baseline that match nothing any more."""
        return self.baseline.stale(self.scan) if self.baseline else ()

    @property
    def failed(self) -> bool:
        """Whether there is an error that is not accepted, or a stale entry."""
        return bool(self.of("error") or self.stale)

    @property
    def worse(self) -> tuple[Finding, ...]:
        """The findings that were accepted as something less bad than they are."""
        return tuple(finding for finding in self.open if self.outgrown(finding))

    def reason(self, finding: Finding) -> str | None:
        """Why `finding` is accepted; None where it is not."""
        return self.baseline.reason(finding) if self.baseline else None

    def outgrown(self, finding: Finding) -> Severity | None:
        """As what `finding` was accepted, where it has become worse; None where it has not."""
        return self.baseline.outgrown(finding) if self.baseline else None

    def _accepted(self) -> Iterator[tuple[Finding, str]]:
        for severity in SEVERITIES:
            for finding in self.scan.of(severity):
                reason = self.reason(finding)
                if reason is not None:
                    yield finding, reason
