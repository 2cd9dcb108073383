"""The Python files of packages, found and read without importing anything."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance.signatures.findings import ScanError


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder or a file to scan, and `anchor`, the folder that absolute imports begin in."""

    path: Path
    anchor: Path


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file: its dotted module name, and its bytes; `error` where it could not be read."""

    path: Path
    module: str
    data: bytes
    error: str = ""

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


def find_tree(place: str, root_module: str) -> Tree:
    """The tree that `place` names: a path, or the dotted name of an installed package.

    Of a dotted name only the first part is looked up, which executes nothing. The anchor of a
    path is the folder from which `root_module` can be imported, where there is one.
    Raises `ScanError`.
    """
    path = Path(os.path.abspath(place))
    if not path.exists():
        return _installed(place)
    return Tree(path, _anchor(path, root_module))


def files_of(tree: Tree) -> Iterator[SourceFile]:
    """Every `.py` file of the tree once, in a stable order; links are followed, loops end.
    A folder that cannot be opened stands for itself, with the reason.

    Hidden folders, caches and virtual environments are left out.
    """
    if tree.path.is_file():
        yield read(tree.path, tree.anchor)
        return
    for path, error in _walk(os.fspath(tree.path)):
        if error:
            yield SourceFile(Path(path), module_name(Path(path), tree.anchor), b"", error)
        else:
            yield read(Path(path), tree.anchor)


def read(path: Path, anchor: Path) -> SourceFile:
    """The file with its bytes, or with the reason why it has none."""
    try:
        if not path.is_file():
            raise OSError("it is no regular file")
        return SourceFile(path, module_name(path, anchor), path.read_bytes())
    except OSError as error:
        return SourceFile(path, module_name(path, anchor), b"", _told(error))


def module_name(path: Path, anchor: Path) -> str:
    """The dotted name of a file; one that is not below `anchor` is named from the topmost
    folder above it that is a package."""
    base = os.path.join(anchor, "")
    if not os.fspath(path).startswith(base):
        base = os.path.join(_package_root(path), "")
    name = os.fspath(path)[len(base) :].removesuffix(".py").replace(os.sep, ".")
    return name.removesuffix(".__init__")


def module_path(anchor: Path, module: str) -> Path | None:
    """The file of a module below `anchor`, or the folder of a package without `__init__.py`."""
    folder = anchor.joinpath(*module.split("."))
    if (folder / "__init__.py").is_file():
        return folder / "__init__.py"
    if folder.with_name(f"{folder.name}.py").is_file():
        return folder.with_name(f"{folder.name}.py")
    return folder if folder.is_dir() else None


def _installed(name: str) -> Tree:
    top, *rest = name.split(".")
    spec = None
    if top.isidentifier():
        try:
            spec = importlib.util.find_spec(top)
        except (ImportError, ValueError):
            spec = None
    if spec is None:
        raise ScanError(f"{name}: no such file or folder, and no package of this name is installed")
    places = spec.submodule_search_locations or ([spec.origin] if spec.origin else [])
    for place in map(Path, places):
        path = module_path(place.parent, name) if place.suffix != ".py" else place
        if path is not None and (place.suffix != ".py" or not rest):
            whole = path.parent if path.name == "__init__.py" else path
            return Tree(whole, place.parent)
    raise ScanError(f"{name}: package {top!r} is installed, but has no source of that name")


def _anchor(path: Path, root_module: str) -> Path:
    for folder in (path, *path.parents):
        if (found := module_path(folder, root_module)) and found.is_file():
            return folder
    ends = [root_module.replace(".", os.sep) + end for end in (".py", f"{os.sep}__init__.py")]
    below = [file for file, _ in _walk(os.fspath(path))] if path.is_dir() else []
    anchors = {
        Path(file[: -len(end)]) for file in below for end in ends if file.endswith(os.sep + end)
    }
    if len(anchors) > 1:
        several = ", ".join(sorted(map(str, anchors)))
        raise ScanError(f"{path}: {root_module} is there more than once, below {several}")
    return anchors.pop() if anchors else _package_root(path)


def _package_root(path: Path) -> Path:
    folder = path.parent if path.is_file() else path
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    return folder


def _walk(root: str) -> Iterator[tuple[str, str]]:
    """Every file and every folder that cannot be opened, with the error of the latter. A
    file that is also there without a link is not followed to again."""
    folders, seen, whole = [root], set[tuple[int, int]](), os.path.join(os.path.realpath(root), "")
    while folders:
        folder = folders.pop()
        try:
            at = os.stat(folder)
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield folder, _told(error)
            continue
        if (at.st_dev, at.st_ino) in seen or any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        seen.add((at.st_dev, at.st_ino))
        entries = [e for e in entries if not e.name.startswith(".") and e.name != "__pycache__"]
        folders += [entry.path for entry in reversed(entries) if os.path.isdir(entry.path)]
        for entry in entries:
            if entry.name.endswith(".py") and _is_there(entry.path):
                again = entry.is_symlink() and os.path.realpath(entry.path).startswith(whole)
                if not again:
                    yield entry.path, ""


def _is_there(path: str) -> bool:
    """Whether it is anything but a folder, or a link to nothing."""
    return os.path.exists(path) and not os.path.isdir(path)


def _told(error: OSError) -> str:
    return f"{type(error).__name__}: {error.strerror or error}"
