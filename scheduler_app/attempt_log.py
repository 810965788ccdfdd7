"""The log of one try: where its file lies, how a line is written, how it is read. No Django here: both sides write it.

A log is a file of JSON lines: ``timestamp``, ``level``, ``logger``, ``event`` and, for an exception, ``error_detail``.
Each line is one append, so the attempt and its supervisor write the same file without a lock, and a reader may
follow it while it grows. A hand-out that continues the same try (deferral, reschedule) appends.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

#: Shorter texts would blank half the log and protect nothing.
SHORTEST_SECRET = 3
MASK = "***"
_SAFE = re.compile(r"[^\w.+@=-]")
_LONGEST_NAME = 200
_MAX_FRAMES = 60
_LINE_LIMIT = 1024 * 1024
#: Made once: json.dumps makes one for each line.
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def path(folder: Path, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int) -> Path:
    """The file of a try below the log folder. Different ids never share a file, whatever signs they hold."""
    parts = [f"dag_id={_name(dag_id)}", f"run_id={_name(run_id)}", f"task_id={_name(task_id)}"]
    if map_index >= 0:
        parts.append(f"map_index={map_index}")
    return folder.joinpath(*parts, f"attempt={try_number}.log")


def callback_path(folder: Path, dag_id: str, run_id: str, kind: str) -> Path:
    """The file of a run's callbacks of one kind; those of a task write into the log of its try."""
    return folder / f"dag_id={_name(dag_id)}" / f"run_id={_name(run_id)}" / f"callback={_name(kind)}.log"


def _name(text: str) -> str:
    """A file name for an id: letters of any script stay, other bytes become %XX, long ones end in a digest."""
    name = _SAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass")), text)
    if name.strip(".") == "":
        name = name.replace(".", "%2E")
    if len(name.encode()) > _LONGEST_NAME:
        import hashlib

        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        name = name.encode()[: _LONGEST_NAME - 17].decode("utf-8", "ignore") + "~" + digest
    return name


def open_for_append(file: Path) -> int:
    """A file descriptor at the end of the log, its folders made. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(file, flags, 0o640)
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        return os.open(file, flags, 0o640)


class Masks:
    """The texts that must not be written: each becomes ``***``."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: Any) -> None:
        """Mask a text, or every text in a list or dict."""
        before = len(self._texts)
        self._texts.update(text for text in _texts(value) if len(text) >= SHORTEST_SECRET)
        if len(self._texts) != before:
            longest_first = sorted(self._texts, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def clean(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def clean_all(self, value: Any) -> Any:
        """A JSON value with every text in it masked."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, dict):
            return {key: self.clean_all(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.clean_all(item) for item in value]
        return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        # A secret of several lines is printed line by line.
        yield from (line.strip() for line in value.splitlines() if "\n" in value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _texts(item)


class LogWriter:
    """Appends lines to one log. A full disk or a closed file loses the line, never the task."""

    def __init__(self, fd: int, clock: Callable[[], dt.datetime], masks: Masks | None = None) -> None:
        self.fd, self.clock = fd, clock
        self.masks = masks if masks is not None else Masks()

    def write(self, level: str, logger: str, event: str, **more: Any) -> None:
        document = {"timestamp": self.clock().isoformat(), "level": level, "logger": logger, "event": event, **more}
        line = _ENCODER.encode(self.masks.clean_all(document))
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        try:
            if os.write(self.fd, data) < len(data):
                os.write(self.fd, b"\n")
        except OSError:
            return


class RawLines:
    """Turns the bytes of a pipe into lines of a log."""

    def __init__(self, writer: LogWriter, level: str, logger: str) -> None:
        self._writer, self._level, self._logger = writer, level, logger
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > _LINE_LIMIT:
            self.finish()

    def finish(self) -> None:
        """Write what came without an end of line."""
        if self._rest:
            self._line(self._rest)
        self._rest = b""

    def _line(self, line: bytes) -> None:
        self._writer.write(self._level, self._logger, line.decode("utf-8", "replace").rstrip("\r"))


def error_detail(
    kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> list[dict[str, Any]]:
    """An exception and what caused it as JSON: the raised one first, each with type, text and frames."""
    found: list[dict[str, Any]] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frames = traceback.extract_tb(trace if not found else error.__traceback__)
        if len(frames) > _MAX_FRAMES:
            del frames[_MAX_FRAMES // 2 : -_MAX_FRAMES // 2]
        found.append(
            {
                "exc_type": (kind if not found and kind else type(error)).__name__,
                "exc_value": _text(error),
                "exc_notes": [str(note) for note in getattr(error, "__notes__", ())],
                "is_cause": bool(found),
                "frames": [
                    {"filename": item.filename, "lineno": item.lineno, "name": item.name, "line": item.line}
                    for item in frames
                ],
            }
        )
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:
        return f"<its __str__ raised {type(broken).__name__}>"


def read(file: Path, offset: int = 0, limit: int = 5_000_000) -> tuple[list[dict[str, Any]], int]:
    """The complete lines from byte `offset` on, at most about `limit` bytes, and the offset to go on from.

    A file that does not exist has no lines. A line that is no JSON (something wrote to the file itself) comes as text.
    """
    try:
        with open(file, "rb") as handle:
            handle.seek(offset)
            data = handle.read(limit)
    except FileNotFoundError:
        return [], offset
    lines, length = complete_lines(data, limit)
    return lines, offset + length


def complete_lines(data: bytes, limit: int) -> tuple[list[dict[str, Any]], int]:
    """The complete lines at the begin of a part of at most `limit` bytes, and how many bytes they are."""
    end = data.rfind(b"\n") + 1
    if end == 0 and len(data) == limit:
        end = len(data)
    return [_parse(line) for line in data[:end].splitlines()], end


def _parse(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except ValueError:
        document = None
    if not isinstance(document, dict) or "event" not in document:
        return {"timestamp": None, "level": "info", "logger": "task", "event": line.decode("utf-8", "replace")}
    return document


def plain_text(lines: Iterable[dict[str, Any]]) -> str:
    """A log as people read it in a terminal: time, level, logger, text, and tracebacks below."""
    return "".join(_plain_line(line) + "\n" for line in lines)


def _plain_line(line: dict[str, Any]) -> str:
    stamp = f"[{line['timestamp']}] " if line.get("timestamp") else ""
    text = f"{stamp}{line.get('level', 'info').upper()} {line.get('logger', '')}: {line['event']}"
    for detail in reversed(line.get("error_detail") or ()):
        text += "\nTraceback (most recent call last):"
        for frame in detail["frames"]:
            text += f'\n  File "{frame["filename"]}", line {frame["lineno"]}, in {frame["name"]}'
            if frame.get("line"):
                text += f"\n    {frame['line']}"
        text += f"\n{detail['exc_type']}: {detail['exc_value']}"
    return text
