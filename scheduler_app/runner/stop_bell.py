"""Hears, on the process's own connection, that task instances were taken from the attempts or triggers that run them.

A hint and no more (I8): with a new connection the process looks at once, since nobody heard what was said before it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

import psycopg2
from django.db import Error

from scheduler_app.models import db
from scheduler_app.supervisor.events import Events

log = logging.getLogger(__name__)


class StopBell:
    """`rings`: by channel, what to call for a batch of notifications. :meth:`arm` once a pass, outside transactions."""

    def __init__(self, events: Events, rings: Mapping[str, Callable[[], None]]) -> None:
        self._events, self._rings = events, rings
        self._connection: Any = None
        #: a copy of the connection's descriptor: it stays ours when Django closes the connection
        self._fd: int | None = None

    def arm(self) -> None:
        """Listen on the connection that the process has now, if it is another one than before; hear what came."""
        connection = db.connection().connection
        if connection is not self._connection:
            self._leave()
            if connection is not None:
                self._listen(connection)
        self._hear()

    def _listen(self, connection: Any) -> None:
        try:
            for channel in self._rings:
                db.execute(f"LISTEN {channel}")
            self._fd = os.dup(connection.fileno())
        except (Error, psycopg2.Error, OSError) as error:
            log.warning("This process cannot listen on %s (%s); it looks by itself", ", ".join(self._rings), error)
        else:
            self._events.watch_fd(self._fd, self._readable)
            self._ring_all()
        self._connection = connection

    def _readable(self) -> None:
        try:
            self._connection.poll()
        except psycopg2.Error:
            # The server ended it: look now, on a new connection, to which the next pass listens.
            self._forget_fd()
            db.close()
            self._ring_all()
            return
        self._hear()

    def _hear(self) -> None:
        if self._connection is not None and self._connection.notifies:
            heard = {one.channel for one in self._connection.notifies}
            self._connection.notifies.clear()
            for channel in heard & self._rings.keys():
                self._rings[channel]()

    def _ring_all(self) -> None:
        for ring in self._rings.values():
            ring()

    def _leave(self) -> None:
        self._forget_fd()
        self._connection = None

    def _forget_fd(self) -> None:
        if self._fd is not None:
            self._events.forget(self._fd)
            os.close(self._fd)
            self._fd = None
