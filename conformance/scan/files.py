"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from conformance.signatures.findings import ScanError


def write_whole(path: Path, text: str) -> None:
    """Write `path` as UTF-8. Raises `ScanError`; a file that was there is then as before."""
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():  # a device or a pipe is not replaced
            target.write_text(text, encoding="utf-8", errors="backslashreplace")
        else:
            _replace(target, text)
    except OSError as error:
        raise ScanError(f"{path} cannot be written: {error.strerror}") from None


def _replace(target: Path, text: str) -> None:
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with beside.open("x", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
