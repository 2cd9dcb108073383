"""Failures that are kept from one run to the next, in pytest's own cache."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import pytest

KEY = "kv/failures"
FOLDER = "kv"
DEVICE_LOST = "the device no longer answers"


@dataclass(frozen=True, slots=True)
class Failure:
    """What a program showed: the clause it breaks, its replay text, and what was found.

    `crashed` says that its process ended, or that the device no longer answered: `clause` is
    then the one that was being checked, and the program is run again in a process of its own.
    """

    clause: str
    replay: str
    found: str
    crashed: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A failure of the check `check` (a test function) of `pool`, first seen on a day."""

    node: str
    check: str
    pool: str
    clause: str
    replay: str
    found: str
    crashed: bool
    first_seen: str

    @classmethod
    def of(cls, node: str, check: str, pool: str, failure: Failure) -> Record:
        """A failure that is seen today."""
        today = date.today().isoformat()
        shown = failure.clause, failure.replay, failure.found, failure.crashed
        return cls(node, check, pool, *shown, today)

    @property
    def place(self) -> tuple[str, str, bool]:
        """One record is kept at each: a later failure there takes the place of the earlier."""
        return self.node, self.clause, self.crashed

    @property
    def command(self) -> str:
        return replay_command(self.check, self.pool, self.replay)


def replay_command(check: str, pool: str, replay: str) -> str:
    """The command line that runs one program in one check; one with a schedule needs the
    simulated device."""
    device = " --kv-device=sim" if "schedule=" in replay else ""
    return f"pytest -k '{check}[{pool}]'{device} --kv-replay '{replay}'"


class Store:
    """The recorded failures of a project: JSON, under `kv/failures` in pytest's cache.

    Two sessions that write at the same moment may lose a record of one, as with pytest's
    own `--lf`. `usable` is False where the cache is off or cannot be written; nothing is
    recorded then.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._cache: pytest.Cache | None = getattr(config, "cache", None)

    def folder(self) -> Path | None:
        """Where journals are; it is made when it is first asked for."""
        for _ in range(2):
            # Of two processes that make the cache at once, pytest before 8.2.2 fails one.
            with suppress(OSError):
                return self._cache.mkdir(FOLDER) if self._cache is not None else None
        return None

    @property
    def usable(self) -> bool:
        return self.folder() is not None

    def read(self) -> list[Record]:
        """Every record, the oldest first; what is not a record is left out."""
        found = self._cache.get(KEY, []) if self._cache is not None else []
        fields = {field.name for field in dataclasses.fields(Record)}
        entries = found if isinstance(found, list) else []
        return [
            Record(**entry)
            for entry in entries
            if isinstance(entry, dict) and entry.keys() == fields
        ]

    def add(self, new: Iterable[Record]) -> None:
        """Keep these too. Where a failure was recorded before, its first day stays."""
        records = {record.place: record for record in self.read()}
        for record in new:
            known = records.get(record.place)
            first_seen = known.first_seen if known else record.first_seen
            records[record.place] = dataclasses.replace(record, first_seen=first_seen)
        self._write(records.values())

    def drop(self, gone: Iterable[Record]) -> None:
        """Forget these."""
        unwanted = set(gone)
        self._write(record for record in self.read() if record not in unwanted)

    def _write(self, records: Iterable[Record]) -> None:
        if self._cache is not None and self.usable:
            self._cache.set(KEY, [asdict(record) for record in records])
