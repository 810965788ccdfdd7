"""Workers over the API: who is alive, what each runs, and which queue nobody hears."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Q

from scheduler_app.models import DagRun, Job, TaskInstance, Trigger, db, transitions

pytestmark = pytest.mark.django_db


def nothing_visible(actor: Any, verb: str) -> Q:
    return Q(pk__in=[])


@pytest.fixture
def house(run: DagRun) -> dict[str, Job]:
    """A worker with two attempts, one that fell silent, one that crashed; triggers; and a queue that nobody hears."""
    now = db.clock()

    def job(kind: str, beat: int, **more: Any) -> Job:
        made = {"start_date": now - timedelta(hours=3), "latest_heartbeat": now - timedelta(seconds=beat)}
        return Job.objects.create(job_type=kind, hostname="box", pid=7, **{**made, **more})

    made = {
        "good": job("CeleryWorkerJob", 1, detail={"slots": 4, "queues": ["default", "fast"], "worker": "w1@box"}),
        "silent": job("CeleryWorkerJob", 900, detail={"slots": 4, "queues": ["default"], "worker": "w2@box"}),
        "crashed": job("LocalTaskJob", 60, state="failed", end_date=now, detail={"slots": 2}),
        "old": job("LocalTaskJob", 9000, state="success", end_date=now - timedelta(hours=2)),
        "triggerer": job("TriggererJob", 1, detail={"capacity": 1000}),
    }
    extract, load = (TaskInstance.objects.get(dag_run=run, task_id=name) for name in ("extract", "load"))
    TaskInstance.objects.filter(pk=extract.pk).update(executor="CeleryExecutor")
    TaskInstance.objects.filter(pk=load.pk).update(executor="CeleryExecutor", queue="gpu")
    for verb in ("schedule", "queue"):
        transitions.tasks(verb, [extract.pk, load.pk], now)
    transitions.tasks("start", [extract.pk], now, job_id=made["good"].pk)
    TaskInstance.objects.filter(pk=extract.pk).update(pid=41)
    Trigger.objects.create(classpath="a.B", created_date=now, triggerer_id=made["triggerer"].pk)
    return made


def test_each_worker_says_whether_it_lives_and_what_it_runs(http: Any, house: dict[str, Job]) -> None:
    found = {item["job_id"]: item for item in http.get("workers").json()["workers"]}
    assert {key: found[row.pk]["condition"] for key, row in house.items() if row.pk in found} == {
        "good": "alive",
        "silent": "silent",
        "crashed": "lost",
    }
    good = found[house["good"].pk]
    assert (good["name"], good["slots"], good["queues"], good["busy"]) == ("w1@box", 4, ["default", "fast"], 1)
    assert [(one["dag_id"], one["run_id"], one["task_id"], one["pid"]) for one in good["running"]] == [
        ("etl", "run0", "extract", 41)
    ]
    assert found[house["crashed"].pk]["name"] == "box:7"


def test_a_queue_that_nobody_hears_is_seen(http: Any, house: dict[str, Job]) -> None:
    numbers = [
        (one["name"], one["waiting"], one["running"], one["workers"], one["slots"])
        for one in http.get("workers").json()["queues"]
    ]
    assert numbers == [("default", 0, 1, 1, 4), ("fast", 0, 0, 1, 4), ("gpu", 1, 0, 0, 0)]


def test_a_triggerer_says_how_many_triggers_it_holds(http: Any, house: dict[str, Job]) -> None:
    (one,) = http.get("workers").json()["triggerers"]
    assert (one["job_id"], one["capacity"], one["held"]) == (house["triggerer"].pk, 1000, 1)


def test_who_may_not_see_the_dag_sees_a_number(as_role: Any, house: dict[str, Job], settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "dag_access": f"{__name__}.nothing_visible"}
    found = {item["job_id"]: item for item in as_role("Viewer").get("workers").json()["workers"]}
    assert (found[house["good"].pk]["busy"], found[house["good"].pk]["running"]) == (1, [])
