"""``kill -9`` in the middle of real tasks: everything ends in success, no hand-out ran twice, nothing is left over."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .play import fresh_database, play


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with fresh_database(os.environ["DATABASE_URL"]) as url:
        yield url


@pytest.mark.parametrize(
    ("harm", "schedulers"),
    [
        ("scheduler", 1),
        ("runner", 1),
        ("zygote", 1),
        ("processor", 1),
        ("everything", 1),
        ("nothing", 2),
        ("one_of_two_schedulers", 2),
    ],
)
def test_whatever_is_killed_every_task_ends_once(database: str, harm: str, schedulers: int) -> None:
    accounts = play(database, harm, tasks=60, seconds=0.1, schedulers=schedulers)
    assert (accounts.run_state, accounts.doubled, accounts.lost) == ("success", 0, 0)


@pytest.mark.redis
@pytest.mark.parametrize("harm", ["worker", "runner"])
def test_behind_redis_every_task_ends_once(database: str, redis_url: str, harm: str) -> None:
    accounts = play(database, harm, tasks=60, seconds=0.1, broker=redis_url)
    assert (accounts.run_state, accounts.doubled, accounts.lost) == ("success", 0, 0)


@pytest.mark.rabbitmq
@pytest.mark.parametrize("harm", ["scheduler", "everything"])
def test_behind_rabbitmq_every_task_ends_once(database: str, rabbitmq_url: str, harm: str) -> None:
    accounts = play(database, harm, tasks=60, seconds=0.1, broker=rabbitmq_url)
    assert (accounts.run_state, accounts.doubled, accounts.lost) == ("success", 0, 0)
