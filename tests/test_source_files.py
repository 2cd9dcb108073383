"""Files that are hard to read, and trees that are hard to walk."""

from __future__ import annotations

import ast
import os
import socket
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from source_trees import (
    COVERED,
    DSA,
    KEYWORD,
    MHA,
    POOLS,
    ROOT,
    VERBS,
    classes,
    errors,
    scanned,
    the_one,
    told,
    write,
)

from conformance.signatures.findings import Scan, ScanError
from conformance.signatures.source import scan

FAULT = ("warning", KEYWORD, "dsa.DSAPool", "get_cpu_copy", "mamba_indices")
UNREAD = ("error", COVERED, "broken", "", "")

BROKEN: dict[str, str | bytes] = {
    "a syntax error": "from engine.pools import KVCache\nclass X(KVCache:\n",
    "an open bracket": "KVCache = (\n",
    "an open string": "KVCache = '''\n",
    "a wrong indentation": "def f():\nKVCache = 1\n",
    "python 2": "print 'KVCache'\n",
    "a later python": "class X(KVCache): ...\nlazy from x import get_cpu_copy!\n",
    "no UTF-8": b"class X(KVCache): name = '\xff\xfe'\n",
    "an unknown cookie": b"# -*- coding: klingon -*-\nclass X(KVCache): ...\n",
    "a wrong cookie": b"# -*- coding: utf-8 -*-\nclass X(KVCache): a = '\xe9'\n",
    "a NUL": b"class X(KVCache): ...\n\0",
    "too many brackets": "KVCache = " + "(" * 3000 + ")" * 3000 + "\n",
    "too many signs": "KVCache = " + "-" * 20_000 + "1\n",
    "too much indentation": "KVCache = 1\n"
    + "".join(" " * n + "if x:\n" for n in range(150))
    + " " * 150
    + "x\n",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_broken_file_is_reported_and_the_scan_goes_on(tmp_path: Path, content: str | bytes) -> None:
    found = scanned(tmp_path, {"broken.py": content, "dsa.py": DSA})
    assert told(found) == [UNREAD, FAULT]
    assert found.findings[0].place.path.name == "broken.py"
    assert "engine.broken cannot be read: " in found.findings[0].text


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_broken_file_that_does_not_mention_the_family_does_no_harm(
    tmp_path: Path, content: str | bytes
) -> None:
    data = content if isinstance(content, bytes) else content.encode()
    other = data.replace(b"KVCache", b"Cache").replace(b"get_cpu_copy", b"copy")
    found = scanned(tmp_path, {"broken.py": other, "dsa.py": DSA})
    assert told(found) == [FAULT]
    assert found.files == 4


def test_broken_file_that_only_calls_a_verb_is_reported(tmp_path: Path) -> None:
    found = scanned(tmp_path, {"broken.py": "pool.get_cpu_copy(i, mamba_indices=m))\n"})
    assert told(found) == [UNREAD]


def test_line_of_a_syntax_error_is_told(tmp_path: Path) -> None:
    found = scanned(tmp_path, {"broken.py": "KVCache = 1\n\nx = = 2\n"})
    assert "line 3" in the_one(found, COVERED).text


READ: dict[str, bytes] = {
    "a BOM": b"\xef\xbb\xbf" + DSA.lstrip().encode(),
    "CRLF": DSA.lstrip().replace("\n", "\r\n").encode(),
    "CR": DSA.lstrip().replace("\n", "\r").encode(),
    "latin-1": b"# coding: latin-1\n# caf\xe9\n" + DSA.encode(),
    "a cookie in line two": b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n'\x80'\n"
    + DSA.encode(),
    "other letters": "größe = '☃'\n".encode() + DSA.encode(),
    "a form feed": b"\x0c\n" + DSA.encode(),
    "no newline at the end": DSA.strip().encode(),
    "a wrong escape": b"x = '\\d'\n" + DSA.encode(),
    "a long expression": b"x = " + b" + ".join([b"y"] * 2000) + b"\n" + DSA.encode(),
    "a long chain": b"x = y" + b".f()" * 700 + b"\n" + DSA.encode(),
    "a long elif": b"if a: pass\n" + b"elif a: pass\n" * 600 + DSA.encode(),
    "deep blocks": b"".join(b" " * n + b"if a:\n" for n in range(60))
    + b" " * 60
    + b"pass\n"
    + DSA.encode(),
    "a big table": b"x = [" + b"{'a': (1, 2)}, " * 5000 + b"]\n" + DSA.encode(),
}


@pytest.mark.parametrize("content", READ.values(), ids=READ)
def test_file_that_python_reads_is_read(tmp_path: Path, content: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(content)
    found = scanned(tmp_path, {"dsa.py": content})
    assert told(found) == [FAULT]
    assert classes(found) == ["dsa.DSAPool"]


def test_line_is_right_after_a_bom_and_crlf(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + DSA.lstrip().replace("\n", "\r\n").encode()
    assert scanned(tmp_path, {"dsa.py": content}).findings[0].place.line == 4


@pytest.mark.parametrize("content", ["", "\n\n", "# KVCache\n", "#", "\\\n", "'''KVCache'''"])
def test_file_without_statements_is_no_problem(tmp_path: Path, content: str) -> None:
    found = scanned(tmp_path, {"empty.py": content.encode(), "dsa.py": DSA})
    assert told(found) == [FAULT]
    assert found.files == 4


def test_only_files_that_mention_the_family_are_parsed(tmp_path: Path) -> None:
    others = {f"other{n}.py": "x = KVCaches + my_get_cpu_copy\n" for n in range(5)}
    found = scanned(tmp_path, {"dsa.py": DSA, **others})
    assert (found.files, found.parsed) == (8, 2)


# -- files that cannot be opened ----------------------------------------------------------


@pytest.fixture
def unreadable(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Makes a file that exists and that nobody can read, not even root."""
    here, opened = Path.cwd(), []

    def make(name: str) -> None:
        os.chdir(tmp_path)  # the name of a socket must be short
        opened.append(socket.socket(socket.AF_UNIX))
        opened[-1].bind(name)

    yield make
    os.chdir(here)
    for each in opened:
        each.close()


def test_file_that_cannot_be_opened_is_reported(
    tmp_path: Path, unreadable: Callable[[str], None]
) -> None:
    write(tmp_path / "engine", {"__init__.py": ""})
    unreadable("engine/broken.py")
    found = scanned(tmp_path, {"dsa.py": DSA})
    assert told(found) == [UNREAD, FAULT]
    assert "Error" in found.findings[0].text


def test_root_in_a_file_that_cannot_be_opened_is_refused(
    tmp_path: Path, unreadable: Callable[[str], None]
) -> None:
    write(tmp_path / "engine", {"__init__.py": "", "dsa.py": DSA})
    unreadable("engine/pools.py")
    with pytest.raises(ScanError, match=r"pools"):
        scan(ROOT, [str(tmp_path / "engine")], VERBS)


def test_folder_that_cannot_be_opened_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir

    def refusing(folder: str) -> object:
        if str(folder).endswith("secret"):
            raise PermissionError(13, "Permission denied", folder)
        return real(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    found = scanned(tmp_path, {"secret/dsa.py": DSA, "mha.py": MHA})
    assert [(severity, clause) for severity, clause, *_ in told(found)] == [("error", COVERED)]
    assert "secret" in found.findings[0].text


def test_folder_named_like_a_file_is_a_folder(tmp_path: Path) -> None:
    found = scanned(tmp_path, {"folder.py/__init__.py": "KVCache = 1", "dsa.py": DSA})
    assert told(found) == [FAULT]


# -- links --------------------------------------------------------------------------------


def linked(folder: Path, *links: tuple[str, str]) -> Scan:
    """The scan of a tree with these links, each a name and what it points to."""
    write(folder / "engine", {"__init__.py": "", "pools.py": POOLS, "dsa.py": DSA})
    for name, target in links:
        (folder / "engine" / name).symlink_to(target)
    return scanned(folder)


LINKS = {
    "to nothing": ("gone.py", "nowhere.py"),
    "to itself": ("loop", "loop"),
    "to itself, named as a file": ("loop.py", "loop.py"),
    "to its own folder": ("again", "."),
    "to the folder above": ("above", ".."),
    "to the root of the tree": ("whole", "../engine"),
    "to no folder": ("gone", "nowhere"),
}


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_link_that_leads_nowhere_new_does_no_harm(tmp_path: Path, link: tuple[str, str]) -> None:
    found = linked(tmp_path, link)
    assert told(found) == [FAULT]
    assert classes(found) == ["dsa.DSAPool"]


def test_circle_of_links_ends(tmp_path: Path) -> None:
    found = linked(tmp_path, ("one", "two"), ("two", "one"), ("a.py", "b.py"), ("b.py", "a.py"))
    assert told(found) == [FAULT]


def test_folder_behind_a_link_is_scanned(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", {"mine.py": DSA})
    found = linked(tmp_path, ("more", "../elsewhere"))
    assert classes(found) == ["dsa.DSAPool", "more.mine.DSAPool"]


def test_tree_behind_a_link_is_scanned(tmp_path: Path) -> None:
    write(tmp_path / "real" / "engine", {"__init__.py": "", "pools.py": POOLS, "dsa.py": DSA})
    (tmp_path / "linked").symlink_to("real")
    found = scan(ROOT, [str(tmp_path / "linked" / "engine")], VERBS)
    assert told(found) == [FAULT]


def test_file_with_two_names_is_told_once(tmp_path: Path) -> None:
    found = linked(tmp_path, ("same.py", "dsa.py"))
    assert len(found.findings) == 1
    assert found.files == 3


@pytest.mark.parametrize("hidden", [".git", "__pycache__", ".venv", "env"])
def test_files_that_are_no_source_of_the_engine_are_left_out(tmp_path: Path, hidden: str) -> None:
    config = {f"{hidden}/pyvenv.cfg": "home = /usr"} if hidden == "env" else {}
    found = scanned(tmp_path, {f"{hidden}/lib/mine.py": DSA, "dsa.py": DSA, **config})
    assert classes(found) == ["dsa.DSAPool"]


def test_overlapping_trees_are_read_once(tmp_path: Path) -> None:
    trees = ["engine", "engine/dsa.py", "engine/", "engine/../engine"]
    found = scanned(tmp_path, {"dsa.py": DSA}, trees=trees)
    assert told(found) == [FAULT]
    assert found.files == 3


def test_part_of_a_tree_is_scanned_alone(tmp_path: Path) -> None:
    files = {"mem/dsa.py": DSA, "mha.py": MHA, "mem/__init__.py": ""}
    found = scanned(tmp_path, files, trees=["engine/mem"])
    assert classes(found) == ["mem.dsa.DSAPool"]
    assert errors(found) == []
    assert found.files == 2
