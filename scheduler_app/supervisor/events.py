"""One selector for everything that a supervising process waits for."""

from __future__ import annotations

import logging
import os
import selectors
from collections.abc import Callable
from typing import Any

from scheduler_app.wire import Channel, Json, WireError

log = logging.getLogger(__name__)

_CHUNK = 64 * 1024


class Events:
    """Calls back when a channel has messages, a pipe has bytes, or either ended. Only ``poll`` blocks."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._unsent: set[Channel] = set()

    def watch(self, channel: Channel, on_message: Callable[[Json], None], on_close: Callable[[str], None]) -> None:
        """`on_close` gets the reason: empty when the other side just ended."""
        self._selector.register(
            channel, selectors.EVENT_READ, lambda mask: self._channel(channel, mask, on_message, on_close)
        )

    def watch_pipe(self, fd: int, on_data: Callable[[bytes], None]) -> None:
        """`on_data` gets the bytes, and an empty text once at the end; then the pipe is closed."""
        os.set_blocking(fd, False)
        self._selector.register(fd, selectors.EVENT_READ, lambda mask: self._pipe(fd, on_data))

    def watch_fd(self, fileobj: Any, on_ready: Callable[[], None]) -> None:
        """`on_ready` reads itself."""
        self._selector.register(fileobj, selectors.EVENT_READ, lambda mask: on_ready())

    def forget(self, fileobj: Any) -> None:
        """Stop watching; must come before the file is closed. Unknown files are no error."""
        self._unsent.discard(fileobj)
        try:
            self._selector.unregister(fileobj)
        except (KeyError, ValueError):
            return

    def send(self, channel: Channel, message: Json, fds: tuple[int, ...] = (), *, close_fds: bool = False) -> None:
        """Send now what the socket takes; the loop sends the rest."""
        channel.send(message, fds, close_fds=close_fds)
        if channel.wants_write:
            self._want_write(channel, True)

    def poll(self, timeout_seconds: float) -> int:
        """Wait at most so long, serve what is ready, return how many files were."""
        ready = self._selector.select(max(0.0, timeout_seconds))
        for key, mask in ready:
            # An earlier callback of this round may have closed the file, or even opened another under its number.
            current = self._selector.get_map().get(key.fd)
            if current is not None and current.data is key.data:
                key.data(mask)
        return len(ready)

    def close(self) -> None:
        self._selector.close()

    def _want_write(self, channel: Channel, wanted: bool) -> None:
        if wanted == (channel in self._unsent):
            return
        (self._unsent.add if wanted else self._unsent.discard)(channel)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        self._selector.modify(channel, events, self._selector.get_key(channel).data)

    def _channel(
        self, channel: Channel, mask: int, on_message: Callable[[Json], None], on_close: Callable[[str], None]
    ) -> None:
        why = ""
        if mask & selectors.EVENT_WRITE:
            channel.flush()
            if not channel.wants_write:
                self._want_write(channel, False)
        if mask & selectors.EVENT_READ:
            try:
                for message in channel.receive():
                    _tell(on_message, message)
            except WireError as error:
                channel.closed, why = True, str(error)
        if channel.closed:
            self.forget(channel)
            on_close(why)

    def _pipe(self, fd: int, on_data: Callable[[bytes], None]) -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.forget(fd)
            os.close(fd)
        on_data(data)


def _tell(on_message: Callable[[Json], None], message: Json) -> None:
    """One message that brings its listener to grief takes neither those behind it along nor the process (I5)."""
    try:
        on_message(message)
    except Exception:
        log.exception("The message %s could not be dealt with", message.get("op") if type(message) is dict else "?")
