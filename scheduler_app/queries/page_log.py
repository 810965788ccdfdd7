"""The log of one attempt, read from its file in byte ranges: a huge file is never read whole.

The file holds one JSON object a line (``timestamp``, ``level``, ``event`` …). A line that is none, because a process
died while it wrote, is shown as it stands.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from scheduler_app import attempt_log
from scheduler_app.log_store.reading import FileSource, Source

#: Bytes of the file in one part of the page.
PART_BYTES: Final = 256 * 1024
#: The longest text of one line that a page shows; the download has all of it.
LINE_CHARS: Final = 20_000
LEVELS: Final = ("debug", "info", "warning", "error", "critical")


@dataclass(frozen=True, slots=True)
class Line:
    #: byte offset of the line in its file: its stable name
    at: int
    time: datetime | None
    level: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of a file from byte ``start`` to byte ``end``; the file had ``size`` bytes."""

    lines: list[Line]
    start: int
    end: int
    size: int

    @property
    def more_before(self) -> bool:
        return self.start > 0

    @property
    def more_after(self) -> bool:
        return self.end < self.size


def read_part(log: Source | Path | None, *, start: int | None = None, end: int | None = None) -> Part | None:
    """The lines from ``start`` on, or those that lie before ``end``, or the last ones. None: there is no log.

    Whole lines only: what follows the last line end is left for the next part, unless it alone fills a part.
    """
    try:
        source = FileSource(log) if isinstance(log, Path) else log
        if source is None:
            return None
        size = source.size
        if start is None:
            stop = size if end is None else min(end, size)
            begin = _line_start(source, max(0, stop - PART_BYTES), stop)
        else:
            begin, stop = min(max(0, start), size), size
        data = source.read(begin, min(PART_BYTES, stop - begin))
    except FileNotFoundError:
        return None
    if begin + len(data) < size or not data.endswith(b"\n"):
        cut = data.rfind(b"\n") + 1
        data = data[:cut] if cut else (data if len(data) == PART_BYTES else b"")
    return Part(_lines(data, begin), begin, begin + len(data), size)


def _line_start(source: Source, at: int, stop: int) -> int:
    """The first byte after a line end at or behind ``at``; ``at`` itself when the part holds none."""
    if at == 0:
        return 0
    found = source.read(at - 1, stop - at + 1).find(b"\n")
    return at if found < 0 else min(at + found, stop)


def _lines(data: bytes, at: int) -> list[Line]:
    lines = []
    for raw in data.splitlines(keepends=True):
        lines.append(line_of(raw.rstrip(b"\r\n").decode(errors="replace"), at))
        at += len(raw)
    return lines


def line_of(text: str, at: int) -> Line:
    """One line of the file as the page shows it."""
    try:
        entry = json.loads(text)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        return Line(at, None, "info", text[:LINE_CHARS], "")
    level = str(entry.get("level", "info")).lower()
    text = str(entry.get("event", ""))
    if entry.get("error_detail"):
        # the first line of the plain form is the event, which stands there already
        text += "\n" + attempt_log.plain_text([{"event": "", "error_detail": entry["error_detail"]}]).partition("\n")[2]
    return Line(
        at=at,
        time=_moment(entry.get("timestamp")),
        level=level if level in LEVELS else "warning" if level == "warn" else "info",
        text=text.rstrip("\n")[:LINE_CHARS],
        source=str(entry.get("logger") or ""),
    )


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
