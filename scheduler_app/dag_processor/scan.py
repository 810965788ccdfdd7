"""One look at a DAG folder: a stat for each file, nothing is opened but ignore files and files not seen before."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .ignore import FILE_NAME, Rules

#: Modification time in nanoseconds and size in bytes: a file with the same two is unchanged.
Stamp = tuple[int, int]

#: Folders in which no person keeps DAG files.
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})
_MENTIONS = re.compile(rb"airflow|scheduler_app", re.IGNORECASE)
_DEFINES = re.compile(rb"dag|asset", re.IGNORECASE)


class FolderUnreadableError(Exception):
    """The folder of a bundle cannot be read. It says nothing about its files: none of them is gone."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What lies in a folder. Paths are relative to it, with forward slashes."""

    files: dict[str, Stamp]
    #: ``.py`` files that no ignore file leaves out, sorted
    python: tuple[str, ...]
    #: folders that could not be read ("a/b/"): their files are unknown, not gone
    unreadable: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def knows(self, path: str) -> bool:
        """Whether this scan could have seen the file."""
        return not any(path.startswith(folder) for folder in self.unreadable)


@dataclass(slots=True)
class _Walk:
    root: Path
    syntax: str
    files: dict[str, Stamp] = field(default_factory=dict)
    python: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)


def scan(root: Path, syntax: str = "glob") -> Scan:
    """Look at every file under `root`. Raises :class:`FolderUnreadableError`."""
    try:
        top = os.stat(root)
        os.scandir(root).close()
    except OSError as error:
        raise FolderUnreadableError(f"The DAG folder {root} cannot be read: {error.strerror}.") from error
    walk = _Walk(root, syntax)
    walk.seen.add((top.st_dev, top.st_ino))
    _enter(walk, "", Rules(), ignored=False)
    return Scan(
        files=walk.files,
        python=tuple(sorted(walk.python)),
        unreadable=tuple(walk.unreadable),
        warnings=tuple(walk.warnings),
    )


def _enter(walk: _Walk, folder: str, rules: Rules, *, ignored: bool) -> None:
    try:
        entries = sorted(os.scandir(walk.root / folder), key=lambda entry: entry.name)
    except OSError as error:
        walk.unreadable.append(folder)
        walk.warnings.append(f"Folder {folder or '.'} cannot be read ({error.strerror}): its DAGs stay as they are.")
        return
    rules = _with_ignore_file(walk, folder, rules, entries)
    for entry in entries:
        path = folder + entry.name
        if entry.name.startswith(".") or entry.name in _SKIPPED_FOLDERS:
            continue
        try:
            if entry.is_dir():
                stat = entry.stat()
                key = (stat.st_dev, stat.st_ino)
                if key not in walk.seen:  # a link back up would never end
                    walk.seen.add(key)
                    _enter(walk, f"{path}/", rules, ignored=ignored or rules.ignores(f"{path}/"))
            elif entry.is_file():
                stat = entry.stat()
                _file(walk, path, (stat.st_mtime_ns, stat.st_size), ignored=ignored or rules.ignores(path))
        except FileNotFoundError:
            continue  # gone between the listing and the stat
        except OSError as error:
            walk.unreadable.append(path)
            walk.warnings.append(f"File {path} cannot be read ({error.strerror}): its DAGs stay as they are.")


def _file(walk: _Walk, path: str, stamp: Stamp, *, ignored: bool) -> None:
    walk.files[path] = stamp
    if ignored:
        return
    if path.endswith(".py"):
        walk.python.append(path)
    elif path.endswith(".zip"):
        walk.warnings.append(f"{path} is not read: DAGs in zip files are not supported. Unpack it into a folder.")


def _with_ignore_file(walk: _Walk, folder: str, rules: Rules, entries: list[os.DirEntry[str]]) -> Rules:
    if not any(entry.name == FILE_NAME for entry in entries):
        return rules
    try:
        text = (walk.root / folder / FILE_NAME).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        walk.warnings.append(f"{folder}{FILE_NAME} cannot be read ({error.strerror}).")
        return rules
    rules, problems = rules.within(folder, text, walk.syntax)
    walk.warnings += [f"{folder}{FILE_NAME}, {problem}" for problem in problems]
    return rules


class DagFileFilter:
    """Tells DAG files from the modules beside them by what they mention, and reads each version of a file once."""

    def __init__(self, *, trust_all: bool = False) -> None:
        self._trust_all = trust_all
        self._known: dict[Path, tuple[Stamp, bool]] = {}

    def dag_files(self, root: Path, found: Scan) -> Iterator[str]:
        """Those ``.py`` files of the scan that may define a DAG or an asset."""
        for path in found.python:
            if self._trust_all or self._may_define_dags(root / path, found.files[path]):
                yield path

    def _may_define_dags(self, file: Path, stamp: Stamp) -> bool:
        known = self._known.get(file)
        if known is None or known[0] != stamp:
            try:
                text = file.read_bytes()
            except OSError:
                return True  # let the parse say what is wrong with it
            known = (stamp, bool(_MENTIONS.search(text) and _DEFINES.search(text)))
            self._known[file] = known
        return known[1]
