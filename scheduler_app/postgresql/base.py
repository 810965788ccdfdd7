"""A transaction whose BEGIN travels with its first statement.

The driver sends BEGIN by itself, and waits for the answer, before the first statement of a transaction: a trip in which
nothing happens (of some twelve that a pass of the scheduler makes for one task). Here the driver stays in autocommit
and the connection keeps in mind that it owes a BEGIN, as Django lets an engine do whose driver begins no transactions
(SQLite's). A block that sends nothing costs nothing.

Nobody needs this engine: with Django's own everything works the same, with one more trip.
"""

from __future__ import annotations

from typing import Any

import psycopg2.extensions
from django.db.backends.postgresql import base
from django.utils.asyncio import async_unsafe

_BEGIN = "BEGIN; "


class Connection(psycopg2.extensions.connection):
    """The driver's connection, with transactions that it does not know of."""

    #: a transaction is open, or will be with the next statement
    is_open = False
    owes_begin = False

    def begin(self) -> None:
        """Opens a transaction with the next statement."""
        self.is_open = self.owes_begin = True

    def send_begin(self) -> None:
        """Opens it now: what follows cannot take the BEGIN with it."""
        if self.owes_begin:
            self._say("BEGIN")
            self.owes_begin = False

    def commit(self) -> None:
        if not self.is_open:
            super().commit()
        elif self._is_over():
            self._say("COMMIT")

    def rollback(self) -> None:
        if not self.is_open:
            super().rollback()
        elif self._is_over():
            self._say("ROLLBACK")

    def _is_over(self) -> bool:
        """Forgets the transaction; whether the server has to be told."""
        told = not self.owes_begin
        self.is_open = self.owes_begin = False
        return told

    def _say(self, command: str) -> None:
        with self.cursor(cursor_factory=psycopg2.extensions.cursor) as handle:
            handle.execute(command)


class Cursor(psycopg2.extensions.cursor):
    """Whatever sends something brings the BEGIN that is owed."""

    connection: Connection

    def execute(self, query: Any, vars: Any = None) -> None:
        if self.connection.owes_begin:
            if isinstance(query, str):
                # an error in what follows leaves the transaction open, as it would by itself
                query, self.connection.owes_begin = _BEGIN + query, False
            else:
                self.connection.send_begin()
        super().execute(query, vars)

    def executemany(self, *args: Any, **kwargs: Any) -> None:
        self.connection.send_begin()
        super().executemany(*args, **kwargs)

    def callproc(self, *args: Any, **kwargs: Any) -> Any:
        self.connection.send_begin()
        return super().callproc(*args, **kwargs)

    def copy_from(self, *args: Any, **kwargs: Any) -> None:
        self.connection.send_begin()
        super().copy_from(*args, **kwargs)

    def copy_to(self, *args: Any, **kwargs: Any) -> None:
        self.connection.send_begin()
        super().copy_to(*args, **kwargs)

    def copy_expert(self, *args: Any, **kwargs: Any) -> None:
        self.connection.send_begin()
        super().copy_expert(*args, **kwargs)


class DatabaseWrapper(base.DatabaseWrapper):
    connection: Connection

    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "connection_factory": Connection, "cursor_factory": Cursor}

    def _start_transaction_under_autocommit(self) -> None:
        if "isolation_level" in self.settings_dict["OPTIONS"]:
            self.connection.autocommit = False  # the driver's own BEGIN says the level
        else:
            self.connection.begin()

    @async_unsafe
    def create_cursor(self, name: str | None = None) -> Any:
        if name:
            self.connection.send_begin()  # the server declares it with a statement of the driver's
        return super().create_cursor(name)
