"""How a step prints, and how it is read back: from one template, field by field."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, dataclass_transform

Rows = tuple[int, ...]

_T = TypeVar("_T")


class _Codec(NamedTuple):
    pattern: str
    write: Callable[[Any], str]
    read: Callable[[str], Any]


def rows_text(rows: Rows) -> str:
    """`4..6,9` for (4, 5, 6, 9)."""
    if not rows:
        return "none"
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    return ",".join(str(a) if a == b else f"{a}..{b}" for a, b in runs)


def read_rows(text: str) -> Rows:
    """Read `rows_text` back; `ValueError` names what is no row."""
    if text == "none":
        return ()
    rows: list[int] = []
    for run in text.split(","):
        match = re.fullmatch(r"(-?\d+)(?:\.\.(-?\d+))?", run)
        if not match:
            raise ValueError(f"program: {run!r} is not a row or a range of rows such as 4..6")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"program: {run!r} runs backwards; list the rows instead")
        rows.extend(range(first, last + 1))
    return tuple(rows)


_NAME = _Codec(r"\w+", str, str)
_NUMBER = _Codec(r"-?\d+", str, int)
_COUNT = _Codec(r"\d+", str, int)
_ROWS = _Codec(r"[^\s\[\]]+", rows_text, read_rows)
_CODECS = {
    "request": _NAME,
    "new": _NAME,
    "copy": _NAME,
    "requests": _Codec(r"\w+(?:,\w+)*", ",".join, lambda text: tuple(text.split(","))),
    "rows": _ROWS,
    "sources": _ROWS,
    "targets": _ROWS,
    "source": _NUMBER,
    "target": _NUMBER,
    "tokens": _COUNT,
    "start": _COUNT,
    "end": _NUMBER,
    "stop": _Codec(
        r"\d*",
        lambda stop: "" if stop is None else str(stop),
        lambda text: int(text) if text else None,
    ),
    "state": _Codec(
        r"(?: state -?\d+)?",
        lambda state: "" if state is None else f" state {state}",
        lambda text: int(text.split()[1]) if text else None,
    ),
}


def codec(
    field: str, pattern: str, write: Callable[[Any], str], read: Callable[[str], Any]
) -> None:
    """How the values of fields of this name are written and read."""
    _CODECS[field] = _Codec(pattern, write, read)


class _Form(NamedTuple):
    """One template: its words and fields in order, and the fields that it leaves out."""

    parts: list[tuple[str, str, Callable[[Any], str]]]
    left_out: list[tuple[str, Any]]

    @classmethod
    def of(cls, template: str, defaults: dict[str, Any]) -> _Form:
        words = re.split(r"\{(\w+)\}", template)
        named = words[1::2]
        parts = [
            ("", word, _CODECS[word].write) if at % 2 else (word, "", str)
            for at, word in enumerate(words)
        ]
        return cls(parts, [pair for pair in defaults.items() if pair[0] not in named])


_KINDS: list[tuple[re.Pattern[str], type]] = []


@dataclass_transform(frozen_default=True)
def step(*templates: str) -> Callable[[type[_T]], type[_T]]:
    """Make a class a step: frozen data that prints by the first of these templates beside
    which every field has its default, and is read back by `read_step`."""

    def make(cls: type[_T]) -> type[_T]:
        made: Any = dataclass(frozen=True, slots=True)(cls)
        defaults = {field.name: field.default for field in dataclasses.fields(made)}
        forms = [_Form.of(template, defaults) for template in templates]

        def text(self: Any) -> str:
            for form in forms:
                if all(getattr(self, name) == default for name, default in form.left_out):
                    return "".join(
                        [
                            write(getattr(self, name)) if name else word
                            for word, name, write in form.parts
                        ]
                    )
            raise AssertionError(f"no template of {cls.__name__} fits {self!r}")

        made.__str__ = text
        _KINDS.extend((_pattern(template), made) for template in templates)
        return made  # type: ignore[no-any-return]

    return make


def read_step(text: str) -> Any:
    """Read `str(step)` back; `ValueError` for text that is no step."""
    for pattern, kind in _KINDS:
        match = pattern.fullmatch(text)
        if match:
            words = match.groupdict().items()
            return kind(**{name: _CODECS[name].read(word) for name, word in words})
    raise ValueError(
        f"program: cannot read the step {text!r}; a program looks like "
        "'write r0 at 4..6; offload r0 as c0; overwrite; reload c0 at 9,8,12'"
    )


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    for at, part in enumerate(parts):
        parts[at] = f"(?P<{part}>{_CODECS[part].pattern})" if at % 2 else re.escape(part)
    return re.compile("".join(parts))
