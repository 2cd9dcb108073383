"""Modules, scopes and classes of source code, parsed when they are asked for."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from conformance.signatures.findings import Place
from conformance.signatures.source.bindings import (
    UNKNOWN,
    Function,
    Names,
    bind,
    bind_until,
    last_name,
)
from conformance.signatures.source.files import SourceFile, Tree, files_of, module_path, read


@dataclass(slots=True, eq=False)
class Scope:
    """The statements of a module, a class body or a function, and what lies around them.
    `cls` is the class whose body or whose method this is, or is in."""

    module: Module
    parent: Scope | None
    body: Sequence[ast.stmt]
    qualname: str = ""
    cls: SourceClass | None = None
    function: Function | None = None
    _names: Names | None = None
    is_method: bool = False

    @property
    def names(self) -> Names:
        """What each name may stand for."""
        if self._names is None:
            self._names = self._walrus() | bind(self.body, self.module.package, self._arguments())
        return self._names

    def names_at(self, line: int) -> Names:
        """What each name may stand for where the statement on a line begins."""
        before = self._walrus() | self._arguments()
        return bind_until(line, self.body, self.module.package, before)

    def holder(self, name: str) -> Scope | None:
        """The scope in which a name is found."""
        at: Scope | None = self
        while at is not None and name not in at.names:
            at = at.parent
        return at

    def _arguments(self) -> Names:
        arguments = every_argument(self.function) if self.function else ()
        return {a.arg: (a,) for a in arguments}

    def _walrus(self) -> Names:
        if b":=" not in self.module.file.data:
            return {}
        nodes = (node for statement in self.body for node in ast.walk(statement))
        return {n.target.id: (UNKNOWN,) for n in nodes if isinstance(n, ast.NamedExpr)}

    @property
    def is_class(self) -> bool:
        """Whether this is the body of a class."""
        return self.cls is not None and self.cls.body is self

    @property
    def first(self) -> str:
        """The name of a method's first parameter; "" for all else, and for a static method."""
        if self.function is None or not self.is_method:
            return ""
        names = {last_name(decorator) for decorator in self.function.decorator_list}
        argument = next(every_argument(self.function), None)
        return argument.arg if argument and not names & {"staticmethod", "classmethod"} else ""

    def hiding(self, names: Collection[str]) -> Scope:
        """A scope inside this one in which these names stand for something unknown."""
        if not names:
            return self
        hidden: Names = dict.fromkeys(names, (UNKNOWN,))
        return Scope(self.module, self, self.body, self.qualname, self.cls, self.function, hidden)


@dataclass(slots=True, eq=False)
class SourceClass:
    """One `class` statement. Where a condition chooses between two of one name, each is a
    class of its own."""

    node: ast.ClassDef
    scope: Scope
    body: Scope

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def dotted(self) -> str:
        return f"{self.scope.module.name}.{self.body.qualname}"

    @property
    def place(self) -> Place:
        return Place(self.scope.module.file.path, self.node.lineno)


@dataclass(eq=False)
class Module:
    """One parsed file; `scopes` are its own, and those of its classes and functions."""

    file: SourceFile
    tree: ast.Module
    scope: Scope = field(init=False)
    classes: dict[ast.ClassDef, SourceClass] = field(default_factory=dict)
    scopes: list[Scope] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scope = Scope(self, None, self.tree.body)
        self._enter(self.scope)

    @property
    def name(self) -> str:
        return self.file.module

    @property
    def package(self) -> str:
        return self.name if self.file.is_package else self.name.rpartition(".")[0]

    @cached_property
    def shared(self) -> frozenset[str]:
        """The names that functions declare to be global."""
        nodes = ast.walk(self.tree) if b"global " in self.file.data else ()
        return frozenset(n for node in nodes if isinstance(node, ast.Global) for n in node.names)

    def release(self) -> None:
        """Break every cycle: the trees are freed at once, and need not be collected."""
        for scope in self.scopes:
            scope.body, scope.cls, scope.function, scope._names = (), None, None, None
        vars(self).clear()

    def lines_with(self, words: Collection[str]) -> list[int]:
        """The numbers of the lines in which one of `words` stands, perhaps as a part."""
        text, found = self.file.data, set[int]()
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        for word in words:
            line, seen, at = 1, 0, text.find(word.encode())
            while at >= 0:
                line += text.count(b"\n", seen, at)
                found.add(line)
                seen, at = at, text.find(word.encode(), at + 1)
        return sorted(found)

    def statements_with(self, words: Collection[str]) -> Iterator[tuple[Scope, ast.stmt]]:
        """The statements on whose lines one of `words` stands, each with its scope; those of
        inner scopes are parts of their definition's statement too."""
        lines = self.lines_with(words)
        for scope in self.scopes:
            for statement in scope.body:
                if stands_on(statement, lines):
                    yield scope, statement

    def _enter(self, scope: Scope) -> None:
        self.scopes.append(scope)
        for node in definitions(scope.body):
            name = _qualname(scope, node.name)
            if isinstance(node, ast.ClassDef):
                inner = Scope(self, scope, node.body, name)
                inner.cls = self.classes[node] = SourceClass(node, scope, inner)
            else:
                around = _seen_by_functions(scope)
                inner = Scope(self, around, node.body, f"{name}.<locals>", scope.cls, node)
                inner.is_method = scope.is_class
            self._enter(inner)


class Modules:
    """The files of some trees by what they mention, and every module below their anchors by
    its name. `unreadable` says why a file could not be read or parsed."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.anchors = list(dict.fromkeys(tree.anchor for tree in trees))
        paths: dict[Path, SourceFile] = {}
        for tree in trees:
            for file in files_of(tree):
                paths.setdefault(file.path, file)
        self.files = list(paths.values())
        self.unreadable: dict[Path, str] = {f.path: f.error for f in self.files if f.error}
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
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            message = error.msg if isinstance(error, SyntaxError) else str(error)
            self.unreadable[file.path] = f"{type(error).__name__}{line}: {message}"
            return None


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


def definitions(body: Sequence[ast.stmt]) -> Iterator[ast.ClassDef | Function]:
    """The classes and functions among these statements, also inside conditions and loops."""
    for statement in body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement
        else:
            for block in blocks(statement):
                yield from definitions(block)


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def every_argument(function: Function) -> Iterator[ast.arg]:
    arguments = function.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (a for a in (arguments.vararg, arguments.kwarg) if a is not None)


def _seen_by_functions(scope: Scope) -> Scope:
    """The names of a class body are not seen by its methods."""
    while scope.is_class and scope.parent:
        scope = scope.parent
    return scope


def stands_on(statement: ast.stmt, lines: Sequence[int]) -> bool:
    """Whether a statement, its decorators included, has one of these sorted lines."""
    first = statement.lineno
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        first = min(node.lineno for node in (statement, *statement.decorator_list))
    at = bisect_left(lines, first)
    return at < len(lines) and lines[at] <= (statement.end_lineno or 0)


def _qualname(scope: Scope, name: str) -> str:
    return f"{scope.qualname}.{name}" if scope.qualname else name
