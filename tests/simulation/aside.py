"""A second connection, in a thread of its own, on which one transaction of the world is held open between two of its
statements while others act: what no sequence of whole transactions can show (a lock too few, a count too early).

Nothing depends on how fast anything runs: a transaction stands still before its n-th statement until the world says go
on. The one exception is forced and therefore the same each time: when the others wait for a lock that it holds, it goes
on to its end.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

from scheduler_app.models import db

#: Until the first look whether somebody waits for us, and between the next ones.
FIRST_LOOK_SECONDS, LOOK_SECONDS = 0.012, 0.003
#: After so long a wait PostgreSQL looks for a deadlock. One kind of plan, whatever the statistics say just now: the
#: rows of a statement come in the same order each time a seed is played.
SESSION = """
SET synchronous_commit = off; SET deadlock_timeout = '40ms'; SET jit = off;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_bitmapscan = off;
SET enable_hashagg = off
"""


class Killed(BaseException):
    """The process was killed at this statement. No ``except Exception`` of the code under test may catch it."""


class Gate:
    """Counts the statements of a connection; at the n-th it stands still, or the process is killed."""

    def __init__(self, stop_at: int, act: Callable[[], None]) -> None:
        self.left, self.act = stop_at, act

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "PREPARE scheduler_" not in sql:  # a plan is made or not by what this connection did before
            self.left -= 1
            if self.left == 0:
                self.act()
        return execute(sql, params, many, context)


def kill() -> None:
    raise Killed


class Aside:
    """One transaction at a time: :meth:`begin` it, :meth:`end` it later. ``close`` ends the thread."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[tuple[Callable[[], Any], int] | None] = queue.SimpleQueue()
        self._stands = threading.Semaphore(0)
        self._go = threading.Event()
        self._dies = self._ended = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._main = db.connection()
        self.is_open = False
        #: it had to go on because somebody waited for it
        self.was_forced = False
        self._thread = threading.Thread(target=self._live, name="aside", daemon=True)
        self._thread.start()

    def begin(self, work: Callable[[], Any], stop_at: int) -> bool:
        """Works up to the n-th statement and stands still there; False when it ended before that."""
        self._go.clear()
        self.was_forced = self._dies = self._ended = False
        self._inbox.put((work, stop_at))
        self._stands.acquire()
        self.is_open = not self._ended
        return self.is_open

    def end(self, *, dies: bool = False) -> Any:
        """Goes on to the end and returns (or raises) what came of it; ``dies``: its process is killed instead."""
        if self.is_open:
            self._dies = dies
            self._go.set()
            self._stands.acquire()
            self.is_open = False
        if self._error is not None:
            raise self._error
        return self._result

    def abandon(self) -> None:
        """Whatever stands still here is killed: the world that began it is over."""
        if self.is_open:
            with contextlib.suppress(BaseException):
                self.end(dies=True)

    def close(self) -> None:
        self.abandon()
        self._inbox.put(None)
        self._thread.join()

    def _live(self) -> None:
        db.execute(SESSION)
        self._eye = db.connection().copy()  # asks whether somebody waits, while our connection is in a transaction
        try:
            while (job := self._inbox.get()) is not None:
                self._result = self._error = None
                try:
                    with db.connection().execute_wrapper(Gate(job[1], self._stand)):
                        self._result = job[0]()
                except BaseException as error:
                    self._error = error
                self._ended = True
                self._stands.release()
        finally:
            self._eye.close()
            db.close()

    def _stand(self) -> None:
        mine = db.connection().connection.info.backend_pid
        self._stands.release()
        patience = FIRST_LOOK_SECONDS
        while not self._go.wait(patience):
            patience = LOOK_SECONDS
            if self._waits_for(mine):
                self.was_forced = True
                return
        if self._dies:
            raise Killed

    def _waits_for(self, pid: int) -> bool:
        """Whether the main connection, which may be a new one since, waits for a lock of the backend `pid`."""
        main = self._main.connection
        if main is None:
            return False
        with self._eye.cursor() as cursor:
            cursor.execute("SELECT %s = ANY(pg_blocking_pids(%s))", [pid, main.info.backend_pid])
            return bool(cursor.fetchone()[0])
