"""``kill -9`` in the middle of real tasks: everything ends in success, no hand-out ran twice, nothing is left over."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .limits import replay
from .own import Missing
from .play import CELERY_HARMS, HARMS, fresh_database, play
from .siege import Siege

GOOD = ("success", 0, 0)


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
    accounts = play(database, tasks=60, seconds=0.1, schedulers=schedulers, harm=HARMS[harm])
    assert (accounts.run_state, accounts.doubled, accounts.lost) == GOOD


@pytest.mark.redis
@pytest.mark.parametrize("harm", ["worker", "runner"])
def test_behind_redis_every_task_ends_once(database: str, redis_url: str, harm: str) -> None:
    accounts = play(database, tasks=60, seconds=0.1, broker=redis_url, harm=CELERY_HARMS[harm])
    assert (accounts.run_state, accounts.doubled, accounts.lost) == GOOD


@pytest.mark.rabbitmq
@pytest.mark.parametrize("harm", ["scheduler", "everything"])
def test_behind_rabbitmq_every_task_ends_once(database: str, rabbitmq_url: str, harm: str) -> None:
    accounts = play(database, tasks=60, seconds=0.1, broker=rabbitmq_url, harm=CELERY_HARMS[harm])
    assert (accounts.run_state, accounts.doubled, accounts.lost) == GOOD


@pytest.mark.redis
def test_a_siege_of_broker_database_and_processes_ends_in_success() -> None:
    siege = Siege(tasks=150, seconds=0.1, every=1.0, seed=63, broker="redis", away_seconds=3.0, most=6)
    try:
        accounts = siege.run()
    except Missing as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    assert accounts.good, (accounts, siege.harmed)
    assert accounts.attempts >= 150
    assert {"broker", "worker1", "database"} <= siege.harmed.keys()


def move(
    transaction: int, task: str, before: str, after: str, slots: int = 1, pool: str = "narrow"
) -> tuple[object, ...]:
    return transaction, 1, task, pool, slots, before, after


def test_a_commit_that_leaves_too_much_in_use_is_counted() -> None:
    fill = [move(1, f"t{n}", "scheduled", "queued") for n in range(4)]
    assert replay(fill) == (0, 4)
    assert replay([*fill, move(2, "late", "scheduled", "queued")]) == (1, 5)
    assert replay([*fill, move(2, "t0", "queued", "running"), move(3, "t0", "running", "success")]) == (0, 3)


def test_a_slot_that_one_transaction_frees_and_takes_is_no_excess() -> None:
    fill = [move(1, f"t{n}", "scheduled", "queued") for n in range(4)]
    assert replay([*fill, move(2, "late", "scheduled", "queued"), move(2, "t0", "running", "deferred")]) == (0, 4)
