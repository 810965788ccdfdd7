"""The page of pools: who holds the slots, who waits for them, each pool by itself."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from scheduler_app.models import DagModel, DagRun, Pool, TaskInstance
from scheduler_app.queries import page_pools

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db


def fill(run: DagRun, pool: str, state: str, count: int, **fields: object) -> None:
    TaskInstance.objects.bulk_create(
        [
            TaskInstance(
                dag_run=run,
                dag_id=run.dag_id,
                task_id=f"{pool}_{state}_{number:03}",
                state=state,
                pool=pool,
                queued_when=NOW + timedelta(seconds=number),
                scheduled_when=NOW + timedelta(seconds=number),
                **fields,
            )
            for number in range(count)
        ]
    )


@pytest.fixture
def run() -> DagRun:
    return factory.make_run(factory.make_dag("sales"), "r1")


def test_each_pool_names_its_own_first_holders_and_the_head_of_its_queue(run: DagRun) -> None:
    Pool.objects.create(pool="narrow", slots=2)
    fill(run, "default_pool", "scheduled", 200, priority_weight=9)
    fill(run, "narrow", "running", 12)
    fill(run, "narrow", "scheduled", 3, priority_weight=1)
    TaskInstance.objects.filter(task_id="narrow_scheduled_002").update(priority_weight=5)
    found = {row.use.pool: row for row in page_pools.pools(TaskInstance.objects.all())}
    assert [one.task_id for one in found["narrow"].holders] == [f"narrow_running_{n:03}" for n in range(10)]
    assert [one.task_id for one in found["narrow"].waiting] == [
        "narrow_scheduled_002",
        "narrow_scheduled_000",
        "narrow_scheduled_001",
    ]
    assert [one.task_id for one in found["default_pool"].waiting] == [
        f"default_pool_scheduled_{n:03}" for n in range(10)
    ]
    assert found["default_pool"].use.scheduled == 200


def test_an_idle_pool_names_nobody(run: DagRun) -> None:
    Pool.objects.create(pool="idle", slots=2)
    found = {row.use.pool: row for row in page_pools.pools(TaskInstance.objects.all())}
    assert (found["idle"].holders, found["idle"].waiting) == ([], [])


def test_names_of_dags_that_a_reader_may_not_see_are_left_out(run: DagRun) -> None:
    fill(run, "default_pool", "running", 1)
    other = factory.make_run(factory.make_dag("stock"), "r1")
    fill(other, "default_pool", "running", 2)
    seen = TaskInstance.objects.filter(dag_id__in=DagModel.objects.filter(pk="stock").values("pk"))
    (row,) = page_pools.pools(seen)
    assert [one.dag_id for one in row.holders] == ["stock", "stock"]
    assert row.use.running == 3


def test_the_page_shows_holders_before_those_who_wait(admin: Client, run: DagRun) -> None:
    fill(run, "default_pool", "scheduled", 1)
    fill(run, "default_pool", "running", 1)
    html = admin.get("/pools/").content.decode()
    assert re.findall(r">default_pool_(\w+)_000</a>", html) == ["running", "scheduled"]
