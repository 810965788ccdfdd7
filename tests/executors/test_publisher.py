"""The publisher: a broker that hangs or refuses holds nobody up, and nothing that it did not confirm is forgotten."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator, Sequence

import pytest

from scheduler_app.executors.base import HandOut
from scheduler_app.executors.celery_publisher import Publisher

from .brokers import wait_for

A, B, C = HandOut(1, 1), HandOut(2, 1), HandOut(3, 7)


class Broker:
    """Keeps what it is sent; hangs while its gate is shut; fails as often as it is told."""

    def __init__(self) -> None:
        self.sent: list[HandOut] = []
        self.revoked: list[HandOut] = []
        self.closed = 0
        self.failures = 0
        self.gate = threading.Event()
        self.gate.set()

    def send(self, hand_out: HandOut) -> None:
        self.gate.wait(20)
        if self.failures:
            self.failures -= 1
            raise OSError("connection reset")
        self.sent.append(hand_out)

    def revoke(self, hand_outs: Sequence[HandOut]) -> None:
        self.revoked += hand_outs

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def publisher(broker: Broker) -> Iterator[Publisher]:
    made = Publisher(broker, most=2)
    made.start()
    yield made
    broker.gate.set()
    made.stop()


def rings(publisher: Publisher) -> bool:
    return bool(select.select([publisher.fileno()], [], [], 10)[0])


def test_what_the_broker_confirmed_is_taken_at_the_next_offer(broker: Broker, publisher: Publisher) -> None:
    assert publisher.offer([A, B]) == [A, B]
    assert rings(publisher)
    assert publisher.offer([A, B]) == []
    assert broker.sent == [A, B]


def test_a_broker_that_hangs_holds_nobody_up_and_is_sent_nothing_twice(broker: Broker, publisher: Publisher) -> None:
    broker.gate.clear()
    assert publisher.offer([A, B]) == [A, B]
    assert publisher.offer([A, B, C]) == [A, B, C]  # C finds no room
    assert publisher.describe() == {"unsent": 2, "broker_error": ""}
    broker.gate.set()
    assert rings(publisher)
    assert publisher.offer([A, B, C]) == [C]
    wait_for(lambda: broker.sent == [A, B, C])


def test_a_broken_connection_is_replaced_and_the_rest_is_sent(broker: Broker, publisher: Publisher) -> None:
    broker.failures = 2
    publisher.offer([A, B])
    assert rings(publisher)
    assert broker.sent == [A, B]
    assert broker.closed == 2
    assert publisher.describe() == {"unsent": 0, "broker_error": ""}


def test_what_is_taken_back_before_it_was_sent_is_not_sent(broker: Broker, publisher: Publisher) -> None:
    broker.gate.clear()
    publisher.offer([A, B])
    publisher.revoke([B])
    broker.gate.set()
    wait_for(lambda: broker.revoked == [B])
    assert broker.sent == [A]
