"""The lines of the components, each behind the coloured name of who said it."""

from __future__ import annotations

import contextlib
import os
import select
from typing import TextIO

#: A line longer than this is cut in two: a component that never ends its line must not fill our memory, and a pipe that
#: has room takes at least 4096 bytes without waiting.
LONGEST_LINE_BYTES = 3 * 1024
PATIENCE_SECONDS = 0.2


class Output:
    """Writes whole lines to one stream, and never waits for long.

    A stream that nobody reads (a stopped terminal, a pager) would stop us, then every component that has something to
    say. So lines are dropped instead, and counted. A stream that is gone (a closed terminal) is ignored.
    """

    def __init__(self, stream: TextIO, *, width: int, colour: bool) -> None:
        self._stream = stream
        self._width = width
        self._colour = colour
        self._dropped = 0

    def line(self, name: str, colour: int, text: str) -> None:
        if not self._has_room():
            self._dropped += 1
            return
        if self._dropped:
            self._write(name, colour, f"({self._dropped} lines before this one were dropped: nobody read them)")
            self._dropped = 0
        self._write(name, colour, text)

    def _write(self, name: str, colour: int, text: str) -> None:
        label = f"{name:<{self._width}} |"
        if self._colour:
            label = f"\x1b[{colour}m{label}\x1b[0m"
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{label} {text}\n")
            self._stream.flush()

    def _has_room(self) -> bool:
        """Whether the stream takes a line now; the first time that it does not, after a moment's patience."""
        try:
            return bool(select.select([], [self._stream], [], 0 if self._dropped else PATIENCE_SECONDS)[1])
        except (OSError, ValueError):  # not a file, or gone
            return True


class Lines:
    """The read end of one component's output: bytes in, whole lines out."""

    def __init__(self, descriptor: int, output: Output, name: str, colour: int) -> None:
        self.descriptor = descriptor
        self._say = lambda text: output.line(name, colour, text)
        self._rest = b""

    def read(self) -> bool:
        """Passes on what is there; False at the end of the stream."""
        try:
            data = os.read(self.descriptor, LONGEST_LINE_BYTES)
        except BlockingIOError:
            return True
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            self._say(line.decode(errors="replace").rstrip("\r"))
        if self._rest and (not data or len(self._rest) >= LONGEST_LINE_BYTES):
            self._say(self._rest.decode(errors="replace"))
            self._rest = b""
        return bool(data)

    def close(self) -> None:
        """Passes on what is left and closes. Descendants that still hold the write end are not waited for."""
        os.set_blocking(self.descriptor, False)
        with contextlib.suppress(BlockingIOError):
            while self._pending():
                pass
        if self._rest:
            self._say(self._rest.decode(errors="replace"))
        os.close(self.descriptor)

    def _pending(self) -> bool:
        before = self._rest
        return self.read() and self._rest is not before
