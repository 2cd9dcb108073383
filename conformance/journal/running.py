"""The program that is running, on disk before it runs.

While a check of a pool runs, its process keeps one file in the cache folder: a line that
says which check it is, and the program that runs now. A process that ends in the ordinary
way takes its file away; one that is killed, or ends itself, leaves it for the next session
to find. The bytes are in the kernel's hands once `write` returns, so they outlive the
process without an fsync; they would not outlive the machine.

The file is locked as long as its process lives. A lock is freed by the kernel, whatever
ends the process, and says more than a process id, which containers give out again and
again. Processes that it forked share the lock: as long as one lives, the file is left
alone. Windows has no such locks: there is no journal there.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from conformance.journal.records import Failure, Record

if sys.platform != "win32":
    import fcntl

PREFIX = "running-"


@dataclass(frozen=True, slots=True)
class Running:
    """A check of a pool that a process runs, and the program it runs now ("" before one)."""

    node: str
    check: str
    pool: str
    clause: str
    pid: int
    replay: str = ""

    @property
    def record(self) -> Record:
        """The failure that this is, once its process is gone."""
        failure = Failure(self.clause, self.replay, "its process ended", crashed=True)
        return Record.of(self.node, self.check, self.pool, failure)


class Journal:
    """The file of one check while it runs."""

    def __init__(self, path: Path, descriptor: int, running: Running) -> None:
        head = asdict(running)
        del head["replay"]
        self._path, self._descriptor = path, descriptor
        self._start = os.pwrite(descriptor, f"{json.dumps(head)}\n".encode(), 0)

    @classmethod
    def open(cls, folder: Path, worker: str, running: Running) -> Journal | None:
        """A new file in `folder`; None where files cannot be made or locked there."""
        if sys.platform == "win32":
            return None
        try:
            descriptor, name = tempfile.mkstemp(".txt", f"{PREFIX}{worker}-", folder)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            return cls(Path(name), descriptor, running)
        except OSError:
            os.close(descriptor)
            Path(name).unlink(missing_ok=True)
            return None

    def write(self, replay: str) -> None:
        """Before a program runs: it takes the place of the one before."""
        try:
            written = os.pwrite(self._descriptor, f"{replay}\n".encode(), self._start)
            os.ftruncate(self._descriptor, self._start + written)
        except OSError:  # a full disk is no reason to stop checking
            return

    def close(self) -> None:
        """The check is over."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def left_behind(folder: Path) -> Iterator[tuple[Path, Running]]:
    """The files in `folder` whose process is gone, and what it was running."""
    if sys.platform == "win32":
        return
    for path in sorted(folder.glob(f"{PREFIX}*")):
        running = _read_unlocked(path)
        if running is not None:
            yield path, running


def wait_for_end(folder: Path, worker: str, seconds: float = 5.0) -> None:
    """Wait until no process has a file of this worker, but not for ever: one is told to be
    gone by its closed connection, which may come before the kernel has freed its locks."""
    end = time.monotonic() + seconds
    while sys.platform != "win32" and time.monotonic() < end:
        if not any(_is_locked(path) for path in folder.glob(f"{PREFIX}{worker}-*")):
            return
        time.sleep(0.01)


def _is_locked(path: Path) -> bool:
    try:
        with path.open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _read_unlocked(path: Path) -> Running | None:
    """None for the file of a process that lives, or that has not said yet what it runs."""
    try:
        with path.open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            head, _, program = file.read().partition("\n")
            return replace(Running(**json.loads(head)), replay=program.partition("\n")[0])
    except (OSError, ValueError, TypeError):
        return None
