"""What the Celery executor calls free, and how it speaks to each kind of broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from scheduler_app.conf import Conf, conf
from scheduler_app.executors.celery import CeleryExecutor
from scheduler_app.executors.celery_app import level, make_app, transport_options
from scheduler_app.models import Job, TaskInstance, transitions
from scheduler_app.models.worker_slots import free_slots
from scheduler_app.scheduler.process import Options, make_executors
from tests import rows
from tests.shapes import parallel


@pytest.mark.parametrize(
    ("workers", "opened", "free"),
    [
        ([], {"default": 3}, 0),
        ([(4, ["default"])], {}, 4),
        ([(4, ["default"])], {"default": 3}, 1),
        ([(4, ["default"]), (2, ["default"])], {"default": 5}, 1),
        # what nobody serves, or what waits beyond the slots of its queue, takes nothing from the others
        ([(4, ["default"])], {"typo": 90}, 4),
        ([(4, ["default"]), (2, ["gpu"])], {"gpu": 90}, 4),
        ([(4, ["default", "gpu"])], {"gpu": 3, "default": 3}, 0),
    ],
)
def test_free_slots_are_those_of_the_workers_less_what_their_queues_hold(
    workers: Sequence[tuple[int, Sequence[str]]], opened: Mapping[str, int], free: int
) -> None:
    assert free_slots(workers, opened) == free


@pytest.mark.parametrize(
    ("weight", "rabbitmq", "redis"), [(-5, 0, 9), (0, 0, 9), (1, 1, 8), (7, 3, 6), (8, 4, 5), (10_000, 9, 0)]
)
def test_a_heavier_task_gets_a_higher_level_which_redis_counts_downwards(
    weight: int, rabbitmq: int, redis: int
) -> None:
    assert level(weight, "amqp://host") == rabbitmq
    assert level(weight, "redis://host") == redis


def test_only_the_scheduler_gives_up_waiting_for_the_broker() -> None:
    assert transport_options("amqp://host", Conf(), publishing=False) == {}
    assert transport_options("amqp://host", Conf(), publishing=True)["confirm_publish"] is True
    assert transport_options("redis://host", Conf(), publishing=True)["socket_timeout"] == 5.0
    assert "socket_timeout" not in transport_options("redis://host", Conf(), publishing=False)


def test_the_application_has_its_own_pool_and_acknowledges_late() -> None:
    app = make_app(replace(conf(), celery_broker_url="redis://host/3", celery_worker_slots=7))
    found: dict[str, Any] = {name: app.conf[name] for name in ("broker_url", "worker_concurrency", "task_acks_late")}
    assert found == {"broker_url": "redis://host/3", "worker_concurrency": 7, "task_acks_late": True}
    assert app.conf.worker_pool == "scheduler_app.executors.celery_worker:RunnerPool"


def test_a_scheduler_may_have_several_executors_the_default_one_first() -> None:
    values = replace(conf(), executor="LocalExecutor", celery_broker_url="redis://host/3")
    assert list(make_executors(values, Options())) == ["LocalExecutor"]
    both = make_executors(values, Options(executor="CeleryExecutor, LocalExecutor"))
    assert list(both) == ["CeleryExecutor", "LocalExecutor"]


@pytest.mark.django_db
def test_what_another_scheduler_handed_out_takes_a_slot_and_our_own_outbox_is_counted_by_the_one_who_asks() -> None:
    Job.objects.create(
        job_type="CeleryWorkerJob",
        start_date=rows.T0,
        latest_heartbeat=rows.T0,
        detail={"slots": 5, "queues": ["default"]},
    )
    executor = CeleryExecutor(replace(conf(), executor="CeleryExecutor", celery_broker_url="redis://host/3"))
    rows.default_pool()
    (run,) = rows.trigger(rows.store(parallel(3, "dag")))
    ids = list(TaskInstance.objects.filter(dag_run=run).order_by("pk").values_list("pk", flat=True))
    assert executor.slots_available() == 5
    transitions.tasks("schedule", ids, rows.T0)
    transitions.tasks("queue", ids[:2], rows.T0, queued_by_job_id=executor._job_id)
    transitions.tasks("queue", ids[2:], rows.T0, queued_by_job_id=99)
    assert executor.slots_available() == 4
    TaskInstance.objects.filter(pk=ids[0]).update(handed_out_at=rows.T0)
    assert executor.slots_available() == 3
    TaskInstance.objects.filter(pk=ids[0]).update(executor="LocalExecutor")
    assert executor.slots_available() == 4
