"""Ships what a log has gained since the last time. Several processes of a machine may do so with the same file.

Beside a log lies ``<log>.shipped``: how far it is shipped, locked while somebody ships. A process that dies leaves it
right, and whoever comes next goes on from there.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from scheduler_app.log_store.pieces import Piece
from scheduler_app.log_store.stores import Store

SUFFIX = ".shipped"
#: A piece is read whole, here and where it is shown.
PIECE_BYTES = 4 * 1024 * 1024
#: So many pieces of one hand-out become one: a task of a day makes a few hundred objects, not 17,000.
MERGE = 32


@dataclass
class Progress:
    """``at``: bytes that are shipped. ``small``: the last pieces, (offset, size), that may still be merged."""

    origin: str = ""
    at: int = 0
    fence: int = 0
    stage: int = 0
    small: list[tuple[int, int]] = field(default_factory=list)
    #: the store takes no more of it
    full: bool = False


def ship(store: Store, folder: Path, file: Path, fence: int, stage: int, now: datetime, *, ended: bool) -> int:
    """Ships whole lines (`ended`: also what has no end of line yet); how many bytes. A file that is gone ships none."""
    log = file.relative_to(folder).as_posix()
    shipped = 0
    with _progress(file) as (progress, save):
        if progress is None:
            return 0
        if (progress.fence, progress.stage) != (fence, stage):
            progress.fence, progress.stage, progress.small = fence, stage, []
        while not progress.full and (data := _next(file, progress.at, ended=ended)):
            data = _fitted(store, progress, file, data)
            piece = Piece(fence, stage, progress.origin, progress.at, len(data))
            store.put(log, piece, data, now)
            progress.at += len(data)
            progress.small.append((piece.offset, piece.size))
            shipped += len(data)
            save()
            if len(progress.small) >= MERGE:
                _merge(store, log, file, progress, now)
                save()
    return shipped


def unshipped(file: Path) -> Progress | None:
    """How far a log was shipped that has more; None when it is shipped whole, or never was."""
    try:
        progress = _read(file.with_name(file.name + SUFFIX).read_text())
        behind = not progress.full and file.stat().st_size > progress.at
    except OSError:
        return None
    return progress if behind else None


def origin_of(file: Path) -> str | None:
    """The origin of the pieces that were shipped from here."""
    try:
        return _read(file.with_name(file.name + SUFFIX).read_text()).origin or None
    except OSError:
        return None


@contextlib.contextmanager
def _progress(file: Path) -> Iterator[tuple[Progress | None, object]]:
    """What is shipped of a file, under its lock, and a function that writes it down. None: there is no file."""
    try:
        size = file.stat().st_size
        number = os.open(file.with_name(file.name + SUFFIX), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except FileNotFoundError:
        yield None, lambda: None
        return
    with os.fdopen(number, "r+") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        progress = _read(handle.read())
        if not progress.origin or progress.at > size:  # never shipped, or another file of that name
            progress = Progress(origin=uuid.uuid4().hex[:8])

        def save() -> None:
            handle.seek(0)
            handle.write(json.dumps(asdict(progress)))
            handle.truncate()
            handle.flush()

        yield progress, save


def _read(text: str) -> Progress:
    try:
        return Progress(**json.loads(text))
    except (ValueError, TypeError):
        return Progress()


def _next(file: Path, at: int, *, ended: bool) -> bytes:
    """The whole lines that follow, at most a piece of them."""
    with file.open("rb") as handle:
        handle.seek(at)
        data = handle.read(PIECE_BYTES)
    end = data.rfind(b"\n") + 1
    if end == 0 and len(data) < PIECE_BYTES and not ended:
        return b""
    return data[:end] if end and not (ended and len(data) < PIECE_BYTES) else data


def _fitted(store: Store, progress: Progress, file: Path, data: bytes) -> bytes:
    """What the store takes of it; a line in place of the rest says where that is."""
    if store.most_bytes is None or progress.at + len(data) <= store.most_bytes:
        return data
    progress.full = True
    kept = data[: data.rfind(b"\n", 0, max(0, store.most_bytes - progress.at)) + 1]
    text = f"The rest of this log is not in the database (log_database_mb). It is on {os.uname().nodename} in {file}."
    return kept + json.dumps({"level": "warning", "logger": "task", "event": text}).encode() + b"\n"


def _merge(store: Store, log: str, file: Path, progress: Progress, now: datetime) -> None:
    """One piece in place of the last ones, when that is not too large; then the old ones go."""
    pieces = [Piece(progress.fence, progress.stage, progress.origin, *item) for item in progress.small]
    progress.small = []
    total = sum(piece.size for piece in pieces)
    if total > PIECE_BYTES or progress.full:
        return
    with file.open("rb") as handle:
        handle.seek(pieces[0].offset)
        data = handle.read(total)
    whole = Piece(progress.fence, progress.stage, progress.origin, pieces[0].offset, total)
    if len(data) == total:
        store.put(log, whole, data, now)
        store.drop(log, pieces)
