"""Opens a log wherever it lies: the file on this machine when it holds all of it, else the pieces that were shipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from scheduler_app.conf import Conf
from scheduler_app.log_store import pieces, ship, stores

CHUNK = 1024 * 1024


class Source(Protocol):
    """A log that was opened: as large as it was then, or larger."""

    @property
    def size(self) -> int: ...

    def read(self, start: int, length: int) -> bytes: ...


class FileSource:
    def __init__(self, path: Path) -> None:
        """Raises FileNotFoundError."""
        self.path = path
        self.size = os.stat(path).st_size

    def read(self, start: int, length: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read(length)


class PiecesSource:
    def __init__(self, store: stores.Store, log: str, found: list[pieces.Piece]) -> None:
        self._store, self._log = store, log
        self._spans = pieces.layout(found)
        self.size = pieces.size(self._spans)

    def read(self, start: int, length: int) -> bytes:
        wanted = pieces.cut(self._spans, start, length)
        return b"".join(self._store.get(self._log, piece, at, count) for piece, at, count in wanted)


def open_log(values: Conf, file: Path) -> Source | None:
    """The log that belongs at `file`, below the log folder; None when nobody has written one. Raises what a store does.

    One statement, or one listing of the store.
    """
    store = stores.of_readers(values)
    log = file.relative_to(values.log_folder).as_posix()
    found = store.pieces(log)
    if not found or {piece.origin for piece in found} == {ship.origin_of(file)}:
        try:
            return FileSource(file)
        except FileNotFoundError:
            pass
    return PiecesSource(store, log, found) if found else None


def chunks(source: Source, start: int = 0) -> Iterator[bytes]:
    """All of it from a byte on, bit by bit: however long it is, no more than a chunk is held."""
    while start < source.size and (data := source.read(start, min(CHUNK, source.size - start))):
        yield data
        start += len(data)
