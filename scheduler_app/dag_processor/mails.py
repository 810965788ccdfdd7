"""Sends mails about tasks that failed or are tried again, and about SLAs and deadlines (F-25, F-36, S-22).

A mail is a row, written with the change that asks for it; here it is claimed, written out, and given to Django's mail
backend on a thread that has no database and no transaction. It is tried again with a growing wait until it is sent or
given up. One that was sent by a process which died before it could say so is sent again, under the same Message-ID.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse

from scheduler_app import metrics
from scheduler_app.conf import Conf
from scheduler_app.models import Callback, TaskInstance, db
from scheduler_app.models.effect import MAIL

log = logging.getLogger(__name__)

#: Mails that are on their way at once.
AT_ONCE = 2
#: A mail server answers several times for one mail; together they may take so many times the time-out of one answer.
_ANSWERS = 6
_NOT_SET_UP = "No mail server is set up: set SCHEDULER_EMAIL_URL, or EMAIL_BACKEND in the settings of your project."

Send = Callable[[EmailMessage, float], None]


def send(message: EmailMessage, timeout_seconds: float) -> None:
    """Raises whatever the backend raises."""
    message.connection = get_connection(timeout=timeout_seconds)
    message.send()


@dataclass(slots=True, eq=False)
class _Running:
    row: Callback
    started: float
    error: str | None = None
    over: bool = False
    #: given up by us, while its thread still waits for the server
    left: bool = False


class Mailer:
    """A few mails at a time: ``start_due`` takes rows, ``step`` stores what became of them."""

    def __init__(
        self, conf: Conf, job_id: int, monotonic: Callable[[], float], deliver: Send = send, *, threaded: bool = True
    ) -> None:
        self._conf, self._job_id, self._monotonic = conf, job_id, monotonic
        self._deliver, self._threaded = deliver, threaded
        self._running: list[_Running] = []

    @property
    def busy(self) -> bool:
        return any(not one.left for one in self._running)

    def start_due(self, now: datetime) -> int:
        """Takes due mails and sends them; how many."""
        free = AT_ONCE - len(self._running)
        if free <= 0:
            return 0
        rows = Callback.objects.claim_mails(self._job_id, now, free)
        for row in rows:
            self._start(_Running(row, self._monotonic()))
        return len(rows)

    def step(self, now: datetime) -> int:
        """Stores what has ended, or takes too long; how many."""
        count = 0
        longest = self._conf.mail_timeout_seconds * _ANSWERS
        for one in list(self._running):
            if one.over:
                self._running.remove(one)
            elif not one.left and self._monotonic() - one.started > longest:
                one.error = f"The mail server took longer than {longest:g} s."
            else:
                continue
            if not one.left:
                one.left = True
                self._store(one.row, one.error, now)
                count += 1
        return count

    def drain(self, seconds: float, clock: Callable[[], datetime], wait: Callable[[float], object]) -> None:
        """Lets what is on its way come to its end, for at most so long."""
        deadline = self._monotonic() + seconds
        while self.busy and self._monotonic() < deadline:
            wait(0.1)
            self.step(clock())

    def _start(self, running: _Running) -> None:
        self._running.append(running)
        if settings.EMAIL_BACKEND.endswith(".dummy.EmailBackend"):
            running.row.attempts = self._conf.mail_attempts
            running.error, running.over = _NOT_SET_UP, True
            return
        try:
            message = compose(running.row, self._conf.base_url)
        except Exception as error:  # a template of the site's own may be wrong
            running.error, running.over = f"It could not be written: {type(error).__name__}: {error}", True
            return
        work = threading.Thread(target=self._carry, args=(running, message), name="mail", daemon=True)
        work.start() if self._threaded else work.run()

    def _carry(self, running: _Running, message: EmailMessage) -> None:
        try:
            self._deliver(message, self._conf.mail_timeout_seconds)
        except Exception as error:
            running.error = f"{type(error).__name__}: {error}"
        finally:
            running.over = True

    def _store(self, row: Callback, error: str | None, now: datetime) -> None:
        next_at = None
        if error is not None and row.attempts < self._conf.mail_attempts:
            next_at = now + timedelta(seconds=self._conf.mail_retry_seconds * 2 ** (row.attempts - 1))
        try:
            Callback.objects.end(row, now, error=error, next_at=next_at)
        except db.DatabaseError as refused:
            # The row stays "running" under our job: it is due again when the job is over.
            log.warning("The end of mail %s could not be stored: %s", row, str(refused).strip())
            db.close()
        metrics.MAILS_ENDED.labels("sent" if error is None else "again" if next_at else "failed").inc()
        if error is None:
            log.info("Mail %s was sent to %s", row, ", ".join(row.payload.get("to", ())))
        else:
            log.warning("Mail %s was not sent%s: %s", row, ", it is tried again" if next_at else "", error)


def compose(row: Callback, base_url: str) -> EmailMessage:
    """The mail of a row. Raises LookupError when its task instance is gone."""
    about = _about(row, base_url)
    name = "task" if row.task_instance_id is not None else "late"
    subject = render_to_string(f"scheduler/mail/{name}_subject.txt", about)
    body = render_to_string(f"scheduler/mail/{name}.txt", about)
    headers = {
        "Message-ID": f"<{hashlib.sha256(row.dedupe_key.encode()).hexdigest()[:40]}@scheduler>",
        "Auto-Submitted": "auto-generated",
    }
    return EmailMessage(" ".join(subject.split()), body, to=list(row.payload["to"]), headers=headers)


def _about(row: Callback, base_url: str) -> dict[str, Any]:
    """What the templates are given: names, numbers and the reason; no parameters, variables or tracebacks."""
    run = row.dag_run
    about: dict[str, Any] = {
        "kind": row.kind.removeprefix(MAIL),
        "dag_id": row.dag_id,
        "run_id": run.run_id if run is not None else "",
        "logical_date": run.logical_date if run is not None else None,
        "reason": row.payload.get("reason"),
        "error": row.payload.get("error"),
        "late": row.payload.get("late"),
        "at": row.created_at,
    }
    place = [row.dag_id, about["run_id"]]
    if row.task_instance_id is not None:
        task = TaskInstance.objects.filter(pk=row.task_instance_id).first()
        if task is None:
            raise LookupError("its task instance is gone")
        index = [task.map_index] if task.map_index >= 0 else []
        name = f"{task.task_id}[{task.map_index}]" if index else task.task_id
        about |= {"task": name, "try_number": row.try_number, "tries": task.max_tries + 1, "hostname": task.hostname}
        return about | {"link": _link(base_url, "task_mapped" if index else "task", [*place, task.task_id, *index])}
    return about | {"link": _link(base_url, "run", place)}


def _link(base_url: str, page: str, place: list[Any]) -> str | None:
    if not base_url:
        return None
    try:
        return base_url.rstrip("/") + reverse(f"scheduler:{page}", args=place)
    except NoReverseMatch:
        return None
