"""Where in the user's code an operation was queued."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import NamedTuple

_inside = [os.path.dirname(os.path.abspath(__file__)) + os.sep]
_is_inside: dict[str, bool] = {}


class Site(NamedTuple):
    """One line of a file."""

    path: str
    line: int

    def __str__(self) -> str:
        """`file:line`, short where the file lies below the current folder."""
        here = os.getcwd() + os.sep
        return f"{self.path.removeprefix(here)}:{self.line}"


UNKNOWN = Site("?", 0)


def skip_package(folder: str) -> None:
    """Code below `folder` is no call site."""
    _inside.append(folder.rstrip(os.sep) + os.sep)
    _is_inside.clear()


def call_site(depth: int = 1) -> Site:
    """The nearest caller, `depth` frames up or more, outside torch and this package."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        path = frame.f_code.co_filename
        inside = _is_inside.get(path)
        if inside is None:
            inside = _is_inside[path] = path.startswith(tuple(_inside))
        if not inside:
            return Site(path, frame.f_lineno)
        frame = frame.f_back
    return UNKNOWN
