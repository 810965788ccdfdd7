"""The threads of a Celery worker and its one runner: what becomes of a message whose hand-out is not claimed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from celery import current_app
from kombu.message import Message

from scheduler_app.conf import Conf
from scheduler_app.executors import celery_worker
from scheduler_app.executors.base import HandOut, Lost
from scheduler_app.executors.celery_worker import Busy, HandOutRequest, Hands, Key

log = logging.getLogger(__name__)

KEY = (7, 1)


class Runner:
    """Takes hand-outs, and claims none of them unless it is told to. ``away``: its process is being started again."""

    away = False

    def __init__(self, values: Conf, slots: int, detail: dict[str, Any], tell: Callable[[Key, str], None]) -> None:
        self.tell, self.waiting = tell, set[Key]()
        self.taken = threading.Event()

    def start(self, job_id: int) -> None: ...

    def stop(self, seconds: float) -> None: ...

    def fileno(self) -> None: ...

    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        if self.away:
            return list(batch)
        self.waiting |= {(one.ti_id, one.fence) for one in batch}
        if batch:
            self.taken.set()
        return []

    def withdraw(self, keys: Sequence[Key]) -> None:
        for key in self.waiting.intersection(keys):
            self.waiting.remove(key)
            self.tell(key, "done")

    def cancel(self, batch: Sequence[HandOut]) -> None: ...

    def lost(self) -> list[Lost]:
        return []


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hands]:
    monkeypatch.setattr(celery_worker, "WorkerRunner", Runner)
    monkeypatch.setattr(celery_worker, "_CLAIM_SECONDS", 0.1)
    made = Hands(Conf(), 2, {})
    made.start()
    yield made
    made.stop(0)


@pytest.mark.parametrize("away", [False, True])
def test_a_hand_out_that_cannot_be_claimed_goes_back_and_frees_its_slot(
    hands: Hands, monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    monkeypatch.setattr(Runner, "away", away)
    claimed: list[Key] = []
    for _ in range(3):  # more often than there are slots
        with pytest.raises(Busy):
            hands.run(KEY, lambda: claimed.append(KEY))
    assert claimed == []


def test_one_that_is_claimed_while_it_is_asked_back_goes_on(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    monkeypatch.setattr(Runner, "withdraw", lambda runner, keys: asked.set())
    runner: Any = hands._runner
    claimed = threading.Event()
    thread = threading.Thread(target=hands.run, args=(KEY, claimed.set))
    thread.start()
    assert asked.wait(10)
    runner.tell(KEY, "begun")
    assert claimed.wait(10)
    assert thread.is_alive()
    runner.tell(KEY, "done")
    thread.join(10)
    assert not thread.is_alive()


def test_a_message_is_answered_once_however_often_it_is_asked_for() -> None:
    message = Message(body="{}", channel=Channel(), delivery_tag=5, headers={"id": "7-1", "task": "t"})
    HandOutRequest(message, app=current_app, task=celery_worker.hand_out, body=([7, 1], {}, {}), decoded=True)
    message.ack_log_error(log, ())
    message.ack_log_error(log, ())
    message.reject_log_error(log, (), requeue=True)
    assert message.channel.answers == [("ack", 5)]


class Channel:
    no_ack_consumers = None

    def __init__(self) -> None:
        self.answers: list[tuple[str, int]] = []

    def basic_ack(self, tag: int, multiple: bool = False) -> None:
        self.answers.append(("ack", tag))

    def basic_reject(self, tag: int, requeue: bool = False) -> None:
        self.answers.append(("reject", tag))
