"""The modules of some trees, parsed when they are asked for."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from conformance.signatures.source.files import SourceFile, Tree, files_of, module_path, read
from conformance.signatures.source.scopes import Module


class Modules:
    """The files of some trees by what they mention, and every module below their anchors by
    its name. `unreadable` says why a file could not be read or parsed, `error_lines` where."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.anchors = list(dict.fromkeys(tree.anchor for tree in trees))
        paths: dict[Path, SourceFile] = {}
        for tree in trees:
            for file in files_of(tree):
                paths.setdefault(file.path, file)
        self.files = list(paths.values())
        self.unreadable: dict[Path, str] = {f.path: f.error for f in self.files if f.error}
        self.error_lines: dict[Path, int] = {}
        self._by_name: dict[str, SourceFile] = {}
        for file in self.files:
            self._by_name.setdefault(file.module, file)
        self.packages = {file.module.partition(".")[0] for file in self.files}
        self._trees = [tree.path for tree in trees]
        self._parsed: dict[Path, Module | None] = {}
        self._mentions: dict[str, list[SourceFile]] = {}

    @property
    def parsed(self) -> list[Module]:
        """The modules that were parsed so far, also those outside the trees."""
        return [module for module in self._parsed.values() if module is not None]

    def mentioning(self, words: Iterable[str]) -> list[SourceFile]:
        """The files in whose text one of `words` stands as a whole word."""
        words = list(words)
        for stem, group in _by_stem(word for word in words if word not in self._mentions):
            likely = [file for file in self.files if stem in file.data]
            for word in group:
                self._mentions[word] = [f for f in likely if has_word(f.data, word.encode())]
        return list({file.path: file for word in words for file in self._mentions[word]}.values())

    def with_outside_bases(self) -> list[SourceFile]:
        """The files in which a class has a base that no file of the trees defines; none where
        the trees hold the whole of their packages."""
        folders = [path for package in self.packages if (path := self._path(package))]
        folders = [path.parent if path.name == "__init__.py" else path for path in folders]
        if all(any(f.is_relative_to(t) for t in self._trees) for f in folders):
            return []
        headers = {file.path: _CLASS.findall(file.data) for file in self.files}
        defined = {name for found in headers.values() for name, _ in found}
        return [
            file
            for file in self.files
            if any(set(_NAME.findall(bases)) - defined for _, bases in headers[file.path])
        ]

    def parse(self, file: SourceFile) -> Module | None:
        """The module of a file; None, with the reason in `unreadable`, where it has an error."""
        if file.path not in self._parsed:
            self._parsed[file.path] = self._parse(file)
        return self._parsed[file.path]

    def load(self, name: str) -> Module | None:
        """The module of a dotted name, also outside the trees but of the same packages; None
        where there is none."""
        file = self._by_name.get(name)
        if file is None:
            path = self._path(name) if name.partition(".")[0] in self.packages else None
            if path is None or not path.is_file():
                return None
            anchor = next(a for a in self.anchors if path.is_relative_to(a))
            file = self._by_name[name] = read(path, anchor)
        return self.parse(file)

    def release(self) -> None:
        """Forget every module; none of them can be used any more."""
        for module in self.parsed:
            module.release()
        self._parsed.clear()

    def exists(self, name: str) -> bool:
        """Whether a module or a folder of modules has this dotted name."""
        return name in self._by_name or self._path(name) is not None

    def _path(self, name: str) -> Path | None:
        if not all(part.isidentifier() for part in name.split(".")):
            return None
        paths = (module_path(anchor, name) for anchor in self.anchors)
        return next((path for path in paths if path is not None), None)

    def _parse(self, file: SourceFile) -> Module | None:
        if file.error:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return Module(file, ast.parse(file.data))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self._keep(file, error)
            return None

    def _keep(self, file: SourceFile, error: Exception) -> None:
        line = error.lineno if isinstance(error, SyntaxError) else None
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        where = f", line {line}" if line else ""
        python = ".".join(map(str, sys.version_info[:2]))
        told = f"{type(error).__name__}{where}: {message} (read as Python {python})"
        self.unreadable[file.path] = told
        self.error_lines[file.path] = line or 1


_CLASS = re.compile(rb"^[ \t]*class[ \t]+(\w+)[ \t]*\(([^)]*)\)", re.MULTILINE)
_NAME = re.compile(rb"\w+")
_WORD = frozenset(b"_0123456789") | {*range(65, 91), *range(97, 123), *range(128, 256)}


def has_word(text: bytes, word: bytes) -> bool:
    """Whether `word` stands in UTF-8 `text` other than as a part of a longer name."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        around = [*text[max(0, at - 1) : at], *text[end : end + 1]]
        if not _WORD.intersection(around):
            return True
        at = text.find(word, end)
    return False


def _by_stem(words: Iterable[str]) -> Iterator[tuple[bytes, list[str]]]:
    """The words in groups that share a few letters, so that the files without these need be
    searched only once: class names of a family are much alike."""
    rest = dict.fromkeys(words)
    while rest:
        letters = Counter(word[i : i + 6] for word in rest for i in range(max(1, len(word) - 5)))
        stem = letters.most_common(1)[0][0]
        group = [word for word in rest if stem in word]
        yield (stem if len(group) > 1 else group[0]).encode(), group
        for word in group:
            del rest[word]
