"""What an attempt prints and logs, as lines of its log."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

from scheduler_app.attempt_log import LogWriter, error_detail

STDOUT = ("info", "task.stdout")
STDERR = ("error", "task.stderr")


def lead_to(writer: LogWriter, level: int = logging.INFO) -> None:
    """Lead prints, ``logging`` and warnings of this process to `writer`, at once and with their level.

    A zygote does this before it forks, with a writer that has no file yet: an attempt then copies fewer pages.
    """
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - it lives as long as the process
    sys.stdout = sys.__stdout__ = LineStream(writer, *STDOUT, fd=1)  # type: ignore[misc, assignment]
    sys.stderr = sys.__stderr__ = LineStream(writer, *STDERR, fd=2)  # type: ignore[misc, assignment]
    root = logging.getLogger()
    root.handlers[:] = [LogHandler(writer)]
    root.setLevel(level)
    logging.captureWarnings(True)


@contextlib.contextmanager
def borrowed() -> Iterator[None]:
    """Inside the block output may be led elsewhere (:func:`lead_to`); afterwards it goes where it went before."""
    streams = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr", "__stdout__", "__stderr__")}
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        for name, stream in streams.items():
            setattr(sys, name, stream)
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.captureWarnings(False)


def connect(stdout: int, stderr: int) -> None:
    """Lead what a C library or a subprocess writes to file descriptors 1 and 2 to the pipes that the supervisor reads;
    standard input is empty already."""
    for source, target in ((stdout, 1), (stderr, 2)):
        os.dup2(source, target)
        os.close(source)


class LineStream(io.TextIOBase):
    """A text stream whose lines become log lines. `fileno` is a pipe, for those who hand it to a subprocess."""

    def __init__(self, writer: LogWriter, level: str, logger: str, fd: int) -> None:
        self._writer, self._level, self._logger, self._fd = writer, level, logger, fd
        self._rest = ""
        self._lock = threading.RLock()
        self.buffer = io.BufferedWriter(_Bytes(self), 1)

    encoding = "utf-8"
    errors = "backslashreplace"
    mode = "w"

    @property
    def name(self) -> str:
        return "<stdout>" if self._fd == 1 else "<stderr>"

    def fileno(self) -> int:
        return self._fd

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            for line in lines:
                self._writer.write(self._level, self._logger, line)
        return len(text)

    def finish(self) -> None:
        """Write what was printed without an end of line."""
        self.buffer.flush()
        with self._lock:
            rest, self._rest = self._rest, ""
        if rest:
            self._writer.write(self._level, self._logger, rest)


class _Bytes(io.RawIOBase):
    """``sys.stdout.buffer``: bytes that take the same way as text."""

    def __init__(self, stream: LineStream) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, data: Any) -> int:
        self._stream.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


class LogHandler(logging.Handler):
    """``logging`` records as log lines."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        try:
            more: dict[str, Any] = {}
            if record.exc_info and record.exc_info[1] is not None:
                more["error_detail"] = error_detail(*record.exc_info)
            if record.stack_info:
                more["stack"] = record.stack_info
            self._writer.write(record.levelname.lower(), record.name, record.getMessage(), **more)
        except Exception:
            self.handleError(record)


def finish() -> None:
    """Write half lines of both streams; the last act of an attempt."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if isinstance(stream, LineStream):
                stream.finish()
            else:
                stream.flush()
        except Exception:
            continue
