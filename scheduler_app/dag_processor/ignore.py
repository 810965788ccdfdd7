"""``.airflowignore``: which files and folders below a DAG folder are not DAG files.

Both syntaxes of Airflow: ``glob`` (as ``.gitignore``: later lines win, ``!`` takes back, a nearer file wins over a
farther one) and ``regexp`` (a line is searched in the path; any match ignores). Paths are relative to the folder of the
ignore file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pathspec

FILE_NAME = ".airflowignore"
SYNTAXES = ("glob", "regexp")

#: Path relative to the ignore file's folder (a folder ends with "/") → ignored, wanted, or no opinion.
Opinion = Callable[[str], bool | None]


@dataclass(frozen=True, slots=True)
class Rules:
    """The ignore files from the DAG folder down to one of its folders."""

    #: (folder as "a/b/" or "" for the DAG folder itself, its rules), outermost first
    layers: tuple[tuple[str, Opinion], ...] = ()

    def ignores(self, path: str) -> bool:
        """Whether a path relative to the DAG folder is left out; a folder's path ends with a slash."""
        for base, opinion in reversed(self.layers):
            found = opinion(path[len(base) :])
            if found is not None:
                return found
        return False

    def within(self, folder: str, text: str, syntax: str) -> tuple[Rules, list[str]]:
        """The rules for `folder` ("" or "a/b/"), whose ignore file says `text`, and what is wrong with that file."""
        opinion, problems = _READERS[syntax](text)
        return Rules((*self.layers, (folder, opinion))), problems


def _glob(text: str) -> tuple[Opinion, list[str]]:
    lines, problems = [], []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            pathspec.GitIgnoreSpec.from_lines([line])
        except ValueError as error:
            problems.append(f"line {number} is no glob pattern: {line!r} ({error})")
        else:
            lines.append(line)
    spec = pathspec.GitIgnoreSpec.from_lines(lines)
    return lambda path: spec.check_file(path).include, problems


def _regexp(text: str) -> tuple[Opinion, list[str]]:
    patterns, problems = [], []
    for number, line in enumerate(text.splitlines(), 1):
        source = re.sub(r"\s*#.*", "", line).strip()
        if not source:
            continue
        try:
            patterns.append(re.compile(source))
        except re.error as error:
            problems.append(f"line {number} is no regular expression: {source!r} ({error})")
    return lambda path: True if any(pattern.search(path.rstrip("/")) for pattern in patterns) else None, problems


_READERS: dict[str, Callable[[str], tuple[Opinion, list[str]]]] = {"glob": _glob, "regexp": _regexp}
