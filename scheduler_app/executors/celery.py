"""The Celery executor: hand-outs go through a broker to workers on any machine (``celery -A scheduler_app worker``).

A message carries the task instance's id and the fence, nothing else. The row is the truth: a message that is lost is
sent again by the scheduler's watchdogs, one that comes twice is refused by the fence, so no result backend is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler_app.conf import Conf
from scheduler_app.executors.base import Executor, HandOut, Lost
from scheduler_app.executors.celery_app import STOP, TASK, level, make_app
from scheduler_app.executors.celery_publisher import Publisher
from scheduler_app.models.worker_slots import CELERY, celery_free, celery_workers


class CeleryExecutor(Executor):
    """Its slots are those of the living workers, whoever handed out what they run."""

    name = CELERY

    def __init__(self, values: Conf) -> None:
        self._is_default = values.executors[0] == self.name
        self._post = BrokerPost(values)
        self._publisher = Publisher(self._post, values.max_tis_per_query)
        self._job_id = 0
        self._started = False

    def start(self, job_id: int) -> None:
        self._job_id = job_id
        if not self._started:
            self._started = True
            self._publisher.start()

    def slots_available(self) -> int:
        return celery_free(celery_workers(), is_default=self._is_default, job_id=self._job_id)

    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        """What the broker has confirmed since it was first offered is taken; the rest is on its way and comes back."""
        return self._publisher.offer(batch)

    def lost(self) -> list[Lost]:
        """None: a worker's attempts are judged by their heartbeats."""
        return []

    def cancel(self, batch: Sequence[HandOut]) -> None:
        self._publisher.revoke(batch)

    def fileno(self) -> int | None:
        return self._publisher.fileno()

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, **self._publisher.describe()}

    def stop(self, drain_seconds: float) -> None:
        """What is handed out goes on: its workers are not ours."""
        if self._started:
            self._publisher.stop()


class BrokerPost:
    """Implements ``celery_publisher.Post`` on one connection, opened when it is needed."""

    def __init__(self, values: Conf) -> None:
        self._app = make_app(values, publishing=True)
        self._url = str(self._app.conf.broker_url or "")
        self._timeout_seconds = values.celery_publish_timeout_seconds
        self._connection: Any = None
        self._producer: Any = None

    def send(self, hand_out: HandOut) -> None:
        self._open()
        self._app.send_task(
            TASK,
            (hand_out.ti_id, hand_out.fence),
            task_id=task_id(hand_out),
            queue=hand_out.queue,
            priority=level(hand_out.priority, self._url),
            producer=self._producer,
            retry=False,
            timeout=self._timeout_seconds,
            confirm_timeout=self._timeout_seconds,
        )

    def revoke(self, hand_outs: Sequence[HandOut]) -> None:
        """Workers drop what they have not begun and stop what they run."""
        self._open()
        self._app.control.revoke([task_id(hand_out) for hand_out in hand_outs], connection=self._connection)
        keys = [[hand_out.ti_id, hand_out.fence] for hand_out in hand_outs]
        self._app.control.broadcast(STOP, arguments={"keys": keys}, connection=self._connection)

    def close(self) -> None:
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            connection.release()

    def _open(self) -> None:
        if self._connection is None:
            connection = self._app.connection_for_write(heartbeat=0)  # idle for long, and nobody beats
            try:
                connection.ensure_connection(max_retries=1, timeout=self._timeout_seconds)
            except BaseException:
                connection.release()
                raise
            self._connection = connection
            self._producer = self._app.amqp.Producer(connection, auto_declare=False)


def task_id(hand_out: HandOut) -> str:
    return f"{hand_out.ti_id}-{hand_out.fence}"
