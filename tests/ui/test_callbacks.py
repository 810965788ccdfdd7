"""Callbacks and deadlines on the pages: who was not told, and what was not done in time."""

from __future__ import annotations

import re
from collections.abc import Callable as Function
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app import attempt_log
from scheduler_app.log_store.pieces import CALLBACK, Piece
from scheduler_app.models import Audit, Callback, DagRun, Deadline, LogPiece, TaskInstance

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> DagRun:
    return factory.make_run(factory.make_dag("sales"), "r1", "failed", {"check": "failed"})


def callback(run: DagRun, kind: str = "dag_failure", state: str = "failed", **fields: Any) -> Callback:
    values = {"created_at": NOW, "next_at": NOW, "attempts": 3, "dedupe_key": f"{kind}{state}{run.pk}{len(fields)}"}
    return Callback.objects.create(kind=kind, state=state, dag_id=run.dag_id, dag_run=run, **(values | fields))


def text(response: Any) -> str:
    html: str = response.content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def cost(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as caught:
        assert client.get(path).status_code == 200
    return len(caught)


def test_the_list_says_who_was_not_told_and_why(admin: Client, run: DagRun) -> None:
    task = TaskInstance.objects.get(dag_run=run, task_id="check")
    callback(run, "task_failure", error="\nValueError: no such channel\nmore", task_instance_id=task.pk, try_number=1)
    callback(run, "dag_success", "success")
    shown = text(admin.get("/callbacks/"))
    assert "task_failure check sales r1 Given up 3 ValueError: no such channel" in shown
    assert "dag_success sales r1 Done" in shown
    assert "task_failure" not in text(admin.get("/callbacks/?state=success"))
    assert "dag_success" not in text(admin.get("/callbacks/?state=failed"))
    assert "No callback matches" in text(admin.get("/callbacks/?dag=other"))


def test_one_shows_its_error_and_log_and_is_run_again_with_a_reason(
    admin: Client, run: DagRun, log_folder: Path
) -> None:
    task = TaskInstance.objects.select_related("dag_run").get(dag_run=run, task_id="check")
    row = callback(run, "task_failure", error="ValueError: no such channel", task_instance_id=task.pk, try_number=1)
    factory.make_log(log_folder, task, [{"event": "calling the pager", "level": "info"}])
    shown = text(admin.get(f"/callbacks/{row.pk}/"))
    assert "ValueError: no such channel" in shown
    assert "calling the pager" in shown
    replayed = text(admin.post(f"/callbacks/{row.pk}/replay/", {"why": "the pager is back"}, follow=True))
    assert "The callback runs again." in replayed
    row.refresh_from_db()
    assert (row.state, row.attempts, row.error) == ("pending", 0, None)
    assert Audit.objects.values_list("event", "owner", "reason").get() == (
        "replay_callback", "ann", "the pager is back",
    )  # fmt: skip


def test_the_log_of_a_task_is_shown_to_those_alone_who_may_see_tasks(
    as_role: Function[[str], Client], run: DagRun, log_folder: Path
) -> None:
    client = as_role("")
    get_user_model().objects.get().user_permissions.add(Permission.objects.get(codename="view_dagrun"))
    task = TaskInstance.objects.select_related("dag_run").get(dag_run=run, task_id="check")
    of_task = callback(run, "task_failure", task_instance_id=task.pk, try_number=1, started_at=NOW)
    factory.make_log(log_folder, task, [{"event": "the password is hunter2", "level": "info"}])
    shown = text(client.get(f"/callbacks/{of_task.pk}/"))
    assert "hunter2" not in shown
    assert "To read the log of a task takes the permission to see tasks." in shown
    of_run = text(client.get(f"/callbacks/{callback(run, started_at=NOW).pk}/"))
    assert "It wrote nothing, or its log lies on another machine or was deleted." in of_run


def test_its_log_is_read_from_the_store_when_another_machine_wrote_it(
    admin: Client, run: DagRun, log_folder: Path
) -> None:
    row = callback(run)
    line = b'{"event": "calling from far away", "level": "info"}\n'
    LogPiece.objects.create(
        log=attempt_log.callback_path(log_folder, "sales", "r1", "dag_failure").relative_to(log_folder).as_posix(),
        name=Piece(0, CALLBACK, "aaaaaaaa", 0, len(line)).name,
        content=line,
        created_at=NOW,
    )
    assert "calling from far away" in text(admin.get(f"/callbacks/{row.pk}/"))


def test_one_that_runs_is_not_run_again(admin: Client, run: DagRun) -> None:
    row = callback(run, state="running")
    assert "Run again" not in text(admin.get(f"/callbacks/{row.pk}/"))
    assert admin.post(f"/callbacks/{row.pk}/replay/").status_code == 409


def test_a_viewer_looks_and_does_not_run_again(as_role: Function[[str], Client], run: DagRun) -> None:
    row = callback(run)
    viewer = as_role("Viewer")
    assert "Run again" not in text(viewer.get(f"/callbacks/{row.pk}/"))
    assert viewer.post(f"/callbacks/{row.pk}/replay/").status_code == 403
    assert viewer.get("/callbacks/999/").status_code == 404


def deadline(run: DagRun, name: str | None = None, **fields: Any) -> Deadline:
    return Deadline.objects.create(dag_id=run.dag_id, dag_run=run, name=name, created_at=NOW, **fields)


def test_what_was_missed_is_told_with_how_it_stands_now(admin: Client, run: DagRun) -> None:
    late = NOW - timedelta(minutes=4)
    deadline(run, "before nine", kind="run", due_at=late, missed_at=NOW - timedelta(minutes=3))
    deadline(run, kind="sla", task_id="check", due_at=late, missed_at=NOW - timedelta(minutes=2))
    deadline(run, kind="sla", task_id="load", due_at=NOW + timedelta(minutes=9))
    shown = text(admin.get("/deadlines/"))
    assert (
        "check sales r1 SLA Failed 11:56:00 2 min ago sales r1 deadline before nine Failed 11:56:00 3 min ago" in shown
    )
    assert "Due next load sales r1 No status in 9 min" in shown
    assert "before nine" not in text(admin.get("/deadlines/?kind=sla"))
    assert "SLA Failed" not in text(admin.get("/deadlines/?kind=run"))


def test_none_is_said_so(admin: Client) -> None:
    assert "No deadline was missed" in text(admin.get("/deadlines/"))
    assert "No callback was asked for" in text(admin.get("/callbacks/"))


def test_the_lists_cost_the_same_for_many(admin: Client, run: DagRun) -> None:
    one = callback(run)
    deadline(run, kind="run", due_at=NOW, missed_at=NOW)
    paths = ("/callbacks/", f"/callbacks/{one.pk}/", "/deadlines/")
    few = [cost(admin, path) for path in paths]
    for number in range(30):
        callback(run, dedupe_key=f"more {number}")
        deadline(run, kind="run", due_at=NOW, missed_at=NOW)
    assert [cost(admin, path) for path in paths] == few == [4, 5, 5]


def test_a_worker_names_what_it_runs(admin: Client) -> None:
    factory.make_job()
    job = factory.make_job("LocalTaskJob", executor_class="LocalExecutor", detail={"slots": 4})
    factory.make_run(factory.make_dag("sales"), "r1", "running", {"check": "running", "load": "queued"})
    TaskInstance.objects.filter(task_id="check").update(job_id=job.pk)
    factory.make_job("CeleryWorkerJob", detail={"slots": 2, "queues": ["gpu"], "worker": "celery@big"})
    TaskInstance.objects.filter(task_id="load").update(executor="CeleryExecutor", queue="etl")
    shown = text(admin.get("/jobs/"))
    assert "node-1:100 local runner · pid 100 ✓ alive 1 of 4 taken one attempt check sales" in shown
    assert "celery@big Celery worker · queues gpu · pid 100 ✓ alive 0 of 2 taken" in shown
    assert "etl ✗ nobody listens 1 0 0 0" in shown


def test_the_first_page_tells_of_what_was_not_told_and_not_in_time(admin: Client, run: DagRun) -> None:
    callback(run, finished_at=NOW - timedelta(hours=1))
    callback(run, "dag_success", finished_at=NOW - timedelta(days=2))
    deadline(run, kind="run", due_at=NOW, missed_at=NOW - timedelta(hours=1))
    deadline(run, kind="run", due_at=NOW, missed_at=NOW - timedelta(hours=2))
    shown = text(admin.get("/"))
    assert "Deadlines missed in 24 h 2" in shown
    assert "Callbacks given up in 24 h 1" in shown
