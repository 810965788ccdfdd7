"""Where pieces of logs are kept: in the database, or wherever fsspec can write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

import fsspec

from scheduler_app.conf import Conf
from scheduler_app.log_store.pieces import Piece, parse
from scheduler_app.models import LogPiece, db

DATABASE = "database"
_MEGABYTE = 1024 * 1024


class Store(Protocol):
    """`log` is a log's path below the log folder. Whatever the driver raises comes through."""

    #: bytes of one log that it takes; None: all
    most_bytes: int | None

    def put(self, log: str, piece: Piece, data: bytes, now: datetime) -> None: ...

    def pieces(self, log: str) -> list[Piece]: ...

    def get(self, log: str, piece: Piece, start: int, length: int) -> bytes: ...

    def drop(self, log: str, pieces: Iterable[Piece]) -> None: ...


def of_readers(values: Conf) -> Store:
    """Where a log may be besides the log folder."""
    return _of(values.log_store or DATABASE, values)


def of_writers(values: Conf, *, is_worker: bool) -> Store | None:
    """Where a process ships its logs; None: nowhere, everybody who reads them is on this machine.

    `is_worker`: a Celery worker, which may run anywhere; so may whatever writes for the tasks of one.
    """
    if values.log_store or is_worker or "CeleryExecutor" in values.executors:
        return of_readers(values)
    return None


def _of(url: str, values: Conf) -> Store:
    return DatabaseStore(values.log_database_mb * _MEGABYTE) if url == DATABASE else RemoteStore(url)


class DatabaseStore:
    """Rows: small, near, and gone with the retention. For logs of ordinary size."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes: int | None = most_bytes

    def put(self, log: str, piece: Piece, data: bytes, now: datetime) -> None:
        LogPiece.objects.bulk_create(
            [LogPiece(log=log, name=piece.name, content=data, created_at=now)], ignore_conflicts=True
        )

    def pieces(self, log: str) -> list[Piece]:
        names = LogPiece.objects.filter(log=log).values_list("name", flat=True)
        return [piece for name in names if (piece := parse(name)) is not None]

    def get(self, log: str, piece: Piece, start: int, length: int) -> bytes:
        sql = "SELECT substring(content FROM %s FOR %s) FROM scheduler_log_piece WHERE log = %s AND name = %s"
        rows = db.fetch(sql, [start + 1, length, log, piece.name])
        return bytes(rows[0][0]) if rows else b""

    def drop(self, log: str, pieces: Iterable[Piece]) -> None:
        LogPiece.objects.filter(log=log, name__in=[piece.name for piece in pieces]).delete()


class RemoteStore:
    """Objects ``<url>/<log>/<piece>``. Credentials are the driver's own matter (AWS_…, FSSPEC_S3_…)."""

    most_bytes: int | None = None

    def __init__(self, url: str) -> None:
        # What another process has written since must be seen.
        options: dict[str, Any] = {"use_listings_cache": False}
        self._is_local = url.startswith(("file:", "local:", "/"))
        if self._is_local:
            options["auto_mkdir"] = True
        self.fs, root = fsspec.core.url_to_fs(url, **options)
        self.root = root.rstrip("/")

    def put(self, log: str, piece: Piece, data: bytes, now: datetime) -> None:
        path = f"{self.root}/{log}/{piece.name}"
        if not self._is_local:
            self.fs.pipe_file(path, data)
            return
        # An object appears whole, a file grows: nobody may read half of it.
        self.fs.pipe_file(f"{path}.new", data)
        self.fs.mv(f"{path}.new", path)

    def pieces(self, log: str) -> list[Piece]:
        try:
            paths = self.fs.ls(f"{self.root}/{log}", detail=False)
        except FileNotFoundError:
            return []
        return [piece for path in paths if (piece := parse(path.rstrip("/").rpartition("/")[2])) is not None]

    def get(self, log: str, piece: Piece, start: int, length: int) -> bytes:
        try:
            return bytes(self.fs.cat_file(f"{self.root}/{log}/{piece.name}", start=start, end=start + length))
        except FileNotFoundError:
            return b""

    def drop(self, log: str, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            with contextlib.suppress(FileNotFoundError):
                self.fs.rm_file(f"{self.root}/{log}/{piece.name}")

    def walk(self) -> Iterator[tuple[str, datetime | None]]:
        """Every file below the store with its time, folder by folder: nothing is listed before it is asked for."""
        open_folders = [self.root]
        while open_folders:
            try:
                entries = self.fs.ls(open_folders.pop(), detail=True)
            except FileNotFoundError:
                continue
            for entry in entries:
                if entry["type"] == "directory":
                    open_folders.append(entry["name"])
                else:
                    yield entry["name"], _moment(entry)


def _moment(entry: dict[str, Any]) -> datetime | None:
    """When an object was written, by whatever name its driver says that."""
    for name in ("LastModified", "last_modified", "updated", "mtime", "modified", "created"):
        value = entry.get(name)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                found = datetime.fromisoformat(value)
                return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None
