"""``manage.py simulate``: the stored DAGs, their usual times and the pools, played forward."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from scheduler_app.models import DagModel, DagRun, db, schedules
from tests.scheduler.scene import Scene
from tests.shapes import shape


def simulate(*words: str) -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command("simulate", "--json", *words, stdout=out)
    found: list[dict[str, Any]] = json.loads(out.getvalue())
    return found


def hourly(scene: Scene, dag_id: str = "dag", **fields: Any) -> None:
    timetable = {"kind": "cron_trigger", "expression": "0 * * * *"}
    dag = scene.dag(shape("a; b", dag_id, timetable=timetable, **fields), row={"start_date": scene.now})
    schedules.plan_next(dag, scene.now)
    dag.save()


@pytest.fixture
def now(scene: Scene) -> Scene:
    """A scene whose time is the database's: the command reads that clock."""
    scene.now = db.clock()
    return scene


def test_a_day_of_an_hourly_dag_has_its_runs_and_names_the_pool_that_binds(now: Scene) -> None:
    hourly(now, tasks={"*": {"pool": "narrow"}})
    now.pool("narrow", 1)
    runs = simulate("--days", "1", "--task-seconds", "30")
    assert len(runs) in (24, 25)
    assert {(run["dag"], run["waits_seconds"], run["bound_by"]) for run in runs} == {("dag", 30.0, "pool_full")}
    (dag,) = simulate("--by", "dag", "--task-seconds", "30")
    assert (dag["runs"], dag["bound_by"]) == (len(runs), "pool_full")
    assert not DagRun.objects.exists()


def test_a_task_takes_what_it_usually_took(now: Scene) -> None:
    (past,) = now.runs(now.dag(shape("a; b")), 1)
    now.settle()
    tasks = [now.task(past, "a"), now.task(past, "b")]
    now.begin(*tasks)
    now.wait(90)
    now.end(*tasks)
    type(past.dag).objects.update(timetable={"kind": "cron_trigger", "expression": "0 * * * *"})
    first = simulate("dag", "--by", "task", "--days", "0.1")[0]
    took = datetime.fromisoformat(first["ends"]) - datetime.fromisoformat(first["starts"])
    assert took == timedelta(seconds=90)


def test_paused_dags_are_left_out_unless_they_are_named(now: Scene) -> None:
    hourly(now, "one")
    hourly(now, "two")
    type(now.dag("a")).objects.filter(pk="two").update(is_paused=True)
    assert {run["dag"] for run in simulate()} == {"one"}
    assert {run["dag"] for run in simulate("two")} == {"two"}


def test_a_dag_that_is_not_there_is_named(now: Scene) -> None:
    with pytest.raises(CommandError, match="no DAG 'gone'"):
        simulate("gone")


def test_a_slot_that_was_missed_runs_now_and_not_in_the_past(now: Scene) -> None:
    hourly(now)
    DagModel.objects.update(start_date=now.now - timedelta(days=2))
    late = simulate("--days", "0.01")[0]
    second = now.now.replace(microsecond=0)
    assert datetime.fromisoformat(late["slot"]) <= second <= datetime.fromisoformat(late["starts"])


def test_where_nothing_is_to_run_a_sentence_says_so(now: Scene) -> None:
    now.dag(shape("a"))
    out = io.StringIO()
    call_command("simulate", stdout=out)
    assert out.getvalue().startswith("No schedule of an unpaused DAG (name others to see theirs) has a run until")
    assert simulate() == []
