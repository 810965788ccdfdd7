"""The rarer causes of "why is this not running?", each provoked: its code, its numbers, and what helps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler_app.engine.explain import Verdict
from scheduler_app.models import (
    Asset,
    AssetEvent,
    AssetQueuedEvent,
    AssetUse,
    DagModel,
    DagRun,
    Limit,
    Pool,
    TaskInstance,
)
from scheduler_app.queries import page_why, page_why_run
from tests.shapes import shape

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db
LEASE = timedelta(seconds=30)


@pytest.fixture(autouse=True)
def _alive() -> None:
    factory.make_job()
    factory.make_job("LocalTaskJob", executor_class="LocalExecutor", detail={"slots": 32})


def sales(text: str = "a >> b", state: str = "running", **fields: Any) -> DagRun:
    """A run of a DAG that names states of its tasks, and fields of its row and of its tasks."""
    tasks, states = fields.pop("tasks", {}), fields.pop("states", {})
    return factory.make_run(factory.make_dag("sales", shape(text, "sales", tasks), **fields), "r1", state, states)


def of_task(run: DagRun, task_id: str, **changes: Any) -> Verdict | None:
    """The headline of a task whose row has these values besides."""
    TaskInstance.objects.filter(dag_run=run, task_id=task_id).update(**changes)
    instance = TaskInstance.objects.select_related("dag_run__dag").get(dag_run=run, task_id=task_id)
    found = page_why.why_task(instance, NOW, LEASE, TaskInstance.objects.all())
    return found.headline if found else None


def of_run(run: DagRun) -> Verdict | None:
    found = page_why.why_run(DagRun.objects.select_related("dag").get(pk=run.pk), NOW, LEASE)
    return found.headline if found else None


def said(verdict: Verdict | None, code: str) -> str:
    assert verdict is not None
    assert (verdict.code, verdict.ok) == (code, False)
    return verdict.text


STALE = (
    "No file defines its DAG any more, so nothing of it starts. Bring back sales.py, which was last read at "
    "2030-01-31 12:00:00 UTC; or fail the run."
)


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_run_whose_file_is_gone(state: str) -> None:
    run = sales(state=state, is_stale=True)
    assert said(of_run(run), "stale") == STALE
    assert said(of_task(run, "a"), "stale") == STALE


def test_a_file_that_cannot_be_imported_is_named_behind_what_keeps_the_task() -> None:
    run = sales(has_import_errors=True)
    assert said(of_task(run, "b"), "trigger_rule") == (
        "It waits for every upstream to succeed; a (not scheduled) has not ended."
    )
    assert said(of_task(run, "a"), "import_error") == (
        "The DAG's file sales.py cannot be imported (see the import errors): until it is mended, what imports it fails."
    )


def test_an_interval_that_nobody_can_tell() -> None:
    run = sales(state="queued")
    DagRun.objects.update(interval_pending=True)
    text = "Its data interval is not known yet: the DAG processor asks the DAG file's own timetable for it."
    assert said(of_run(run), "interval") == (
        f"{text} No DAG processor is running: python manage.py rundagprocessor starts one."
    )
    factory.make_job("DagProcessorJob")
    assert said(of_run(run), "interval") == text


def test_a_branch_decided_against_it() -> None:
    run = sales(states={"a": "success"}, tasks={"a": {"can_skip_downstream": True}})
    TaskInstance.objects.filter(task_id="a").update(skips=["b"])
    assert said(of_task(run, "b"), "branch") == "Task a decided to skip it: clear a too to have it decide again."


def test_a_task_that_left_the_dag_and_a_version_that_is_not_stored() -> None:
    run = sales()
    TaskInstance.objects.filter(task_id="b").update(task_id="old")
    assert said(of_task(run, "old"), "task_removed") == (
        "Task old is no longer part of the DAG: its instance will be removed."
    )
    DagRun.objects.update(dag_version=None)
    assert said(of_task(run, "a", dag_version=None), "version") == (
        "The DAG version of this run is not stored: parse the DAG file again."
    )


def test_a_restart_and_a_hand_over_that_takes_its_time() -> None:
    run = sales("a; b", states={"a": "restarting", "b": "queued"})
    assert said(of_task(run, "a"), "restarting") == "Its running attempt was told to stop; then it starts again."
    since = {"queued_when": NOW - timedelta(seconds=40), "handed_out_at": None}
    assert said(of_task(run, "b", **since), "outbox") == (
        "It has its slots and waits to be handed to LocalExecutor, for 40 s now. If that lasts, the scheduler's log "
        "says why LocalExecutor takes nothing."
    )


@pytest.mark.parametrize("limit", ["max_active_tis_per_dag", "max_active_tis_per_dagrun"])
def test_limits_of_a_single_task(limit: str) -> None:
    run = sales("a", states={"a": "scheduled"})
    other = factory.make_run(run.dag, "r0", "running", {"a": "running"})
    TaskInstance.objects.filter(dag_run=other).update(dag_run=run, map_index=0)
    TaskInstance.objects.filter(dag_run=run, map_index=-1).update(map_index=1, **{limit: 1})
    instance = TaskInstance.objects.select_related("dag_run__dag").get(map_index=1)
    found = page_why.why_task(instance, NOW, LEASE, TaskInstance.objects.all())
    where = "all runs" if limit == "max_active_tis_per_dag" else "its run"
    assert said(found and found.headline, limit) == (
        f"1 active instance of task a in {where}, and {limit} is 1. It waits for a[0] (running)."
    )


def test_keyed_limits_that_are_closed_too_small_or_kept() -> None:
    Limit.objects.create(name="closed", amount=0)
    Limit.objects.create(name="warehouse", amount=3)
    run = sales("a; b; c", states={"a": "scheduled", "b": "scheduled", "c": "running"})
    assert said(of_task(run, "a", limits="closed=1"), "limit_closed") == (
        "Limit closed is 0: nothing that needs it starts until it is raised."
    )
    assert said(of_task(run, "a", limits="warehouse=4"), "limit_too_small") == (
        "It can never run: it takes 4 of limit warehouse, which has 3."
    )
    TaskInstance.objects.filter(task_id="c").update(limits="warehouse=1")
    TaskInstance.objects.filter(task_id="b").update(
        limits="warehouse=3", scheduled_when=NOW - timedelta(hours=1), priority_weight=1
    )
    assert said(of_task(run, "a", limits="warehouse=1"), "limit_reserved") == (
        "What is free of limit warehouse is kept for a task that takes several and waited long."
    )
    TaskInstance.objects.filter(task_id="b").update(scheduled_when=NOW)
    assert of_task(run, "a") is None


def test_slots_that_are_kept_for_a_task_that_the_reader_may_not_see() -> None:
    Pool.objects.create(pool="wide", slots=3)
    run = sales("a; c", states={"a": "scheduled", "c": "running"})
    secret = factory.make_run(factory.make_dag("secret", shape("s", "secret")), "r1", "running", {"s": "scheduled"})
    TaskInstance.objects.update(pool="wide")
    TaskInstance.objects.filter(dag_run=secret).update(pool_slots=3, scheduled_when=NOW - timedelta(hours=1))
    instance = TaskInstance.objects.select_related("dag_run__dag").get(dag_run=run, task_id="a")
    found = page_why.why_task(instance, NOW, LEASE, TaskInstance.objects.filter(dag_id="sales"))
    assert said(found and found.headline, "pool_reserved") == (
        "The free slots of pool wide are kept for a task that needs 3 slots and waited long."
    )


def test_a_dag_that_skips_slots_while_its_runs_go_on() -> None:
    run = sales(overlap_policy="skip", max_active_runs=1, next_dagrun_run_after=NOW + timedelta(minutes=1))
    assert said(page_why_run.why_no_run(run.dag, NOW), "overlap_skip") == (
        "1 run of it has not ended, and max_active_runs is 1: a slot that falls due meanwhile gets no run "
        "(overlap_policy='skip'; the audit has each of them)."
    )
    DagRun.objects.all().delete()
    assert page_why_run.why_no_run(run.dag, NOW) is None


def test_a_dag_that_waits_for_assets_names_those_that_were_not_updated() -> None:
    dag = factory.make_dag("sales", timetable={"kind": "asset"})
    for number in range(5):
        asset = Asset.objects.create(name=f"a{number}", uri=f"s3://a{number}", created_at=NOW, updated_at=NOW)
        AssetUse.objects.create(dag=dag, asset=asset, kind="schedule", created_at=NOW)
        if number == 2:
            event = AssetEvent.objects.create(asset=asset, timestamp=NOW)
            AssetQueuedEvent.objects.create(dag=dag, asset=asset, event=event, created_at=NOW)
    found = page_why_run.why_no_run(DagModel.objects.get(), NOW)
    assert said(found, "assets") == (
        "It has no clock: a run is made when its assets were updated. 1 of 5 assets since its last run; not yet: a0, "
        "a1, a3 and 1 more."
    )
