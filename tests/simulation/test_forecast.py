"""What ``manage.py simulate`` foretells is what the real loop then does: the same starts and ends, to the second."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from scheduler_app.engine.forecast import Planned, forecast
from scheduler_app.models import DagModel, TaskInstance, schedules
from scheduler_app.queries import forecasts
from tests.rows import T0
from tests.scheduler.scene import Scene
from tests.shapes import shape

SHAPES = ("a >> [b, c] >> d", "a; b; c; d", "a >> b >> c", "a >> [b, c, d]; b >> e", "[a, b] >> c; d")
POOLS = {"default_pool": 5, "narrow": 2}
MINUTES = 21
#: (DAG, slot, task) → when it began, when it ended
Times = dict[tuple[str, datetime, str], tuple[datetime, datetime]]


def a_house(scene: Scene, rng: random.Random) -> tuple[list[DagModel], int]:
    """Some scheduled DAGs with limits of every kind, and the slots of the executor."""
    for name, slots in POOLS.items():
        scene.pool(name, slots)
    dags = []
    for number in range(rng.randint(2, 4)):
        tasks = {
            name: {
                "pool": rng.choice(["default_pool", "narrow"]),
                "pool_slots": rng.choice([1, 1, 2]),
                "priority_weight": rng.choice([1, 1, 2, 5]),
                "weight_rule": rng.choice(["downstream", "absolute", "upstream"]),
                "is_empty": rng.random() < 0.15,
                "max_active_tis_per_dag": rng.choice([None, None, 1]),
            }
            for name in "abcde"
        }
        dag = shape(
            rng.choice(SHAPES),
            f"dag{number}",
            tasks=tasks,
            timetable={"kind": "cron_trigger", "expression": f"*/{rng.choice([2, 3, 5, 7])} * * * *"},
            max_active_runs=rng.choice([1, 2, 4]),
            max_active_tasks=rng.choice([1, 2, 8]),
            catchup=rng.random() < 0.5,
            overlap_policy=rng.choice(["queue", "queue", "skip", "cancel_oldest"]),
        )
        bounds = {
            "overlap_policy": dag.overlap_policy,
            "start_date": T0 - timedelta(minutes=9),
            "end_date": T0 + timedelta(minutes=MINUTES),
        }
        row = scene.dag(dag, row=bounds)
        schedules.plan_next(row, scene.now)
        row.save()
        dags.append(row)
    return dags, rng.choice([2, 4, 9])


def foretold(planned: list[Planned], slots: int) -> Times:
    found = forecast(planned, forecasts.pool_slots(), slots, now=T0)
    return {
        (one.dag_id, one.slot, one.task_id): (one.started_at, one.ended_at)
        for one in found
        if one.task_id and one.started_at and one.ended_at and not one.cancelled
    }


def played(scene: Scene, seconds: dict[str, dict[str, float]], slots: int) -> Times:
    """The real loop on a virtual clock; attempts take their time and succeed."""
    ends: dict[int, datetime] = {}
    while True:
        scene.executor.slots = slots - len(ends)
        due = [key for key, at in ends.items() if at == scene.now]
        for key in sorted(due):
            del ends[key]
        scene.executor.slots = slots - len(ends)
        if due:
            scene.end(*TaskInstance.objects.filter(pk__in=due).order_by("pk"))
        while scene.tick() or TaskInstance.objects.filter(state="queued").exists():
            for task in TaskInstance.objects.filter(state="queued").order_by("pk"):
                scene.begin(task)
                ends[task.pk] = scene.now + timedelta(seconds=seconds[task.dag_id][task.task_id])
            alive = set(TaskInstance.objects.filter(state="running").values_list("pk", flat=True))
            ends = {key: at for key, at in ends.items() if key in alive}  # a cancelled run stops its attempts
            scene.executor.slots = slots - len(ends)
        slot = DagModel.objects.order_by("next_dagrun_run_after").values_list("next_dagrun_run_after", flat=True)
        coming = [*ends.values(), *(at for at in slot if at is not None and at > scene.now)]
        if not coming:
            break
        scene.wait((min(coming) - scene.now).total_seconds())
    rows = TaskInstance.objects.select_related("dag_run").filter(state="success")
    return {(ti.dag_id, ti.dag_run.logical_date, ti.task_id): (ti.start_date, ti.end_date) for ti in rows}


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(4))
def test_the_loop_does_what_was_foretold(seed: int) -> None:
    rng = random.Random(seed)
    scene = Scene()
    dags, slots = a_house(scene, rng)
    until = T0 + timedelta(minutes=MINUTES)
    planned = [
        replace(one, seconds={task: float(rng.randint(5, 90)) for task in one.seconds})
        for one in forecasts.planned(dags, T0, until, 60.0)
    ]
    expected = foretold(planned, slots)
    assert len(expected) > 15
    assert played(scene, {one.graph.dag.dag_id: dict(one.seconds) for one in planned}, slots) == expected
