"""Each page without a finding of axe and without a sideways scroll: light, dark, and as narrow as a phone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.urls import resolve

from scheduler_app import wire
from scheduler_app.models import (
    Asset,
    AssetEvent,
    AssetUse,
    Audit,
    Backfill,
    BackfillSlot,
    Callback,
    DagRun,
    Deadline,
    ParseError,
    TaskInstance,
    TaskState,
    db,
)
from scheduler_app.models.state_store import QUESTION_KEY
from scheduler_app.queries.page_failures import key_of
from scheduler_app.ui import urls
from ui import factory

pytestmark = [pytest.mark.django_db(transaction=True, serialized_rollback=True), pytest.mark.processes]

FX = key_of("KeyError: 'fx'")
PAGES = (
    "/",
    "/dags/",
    "/dags/?q=nothing",
    "/dags/sales/",
    "/dags/sales/grid/",
    "/dags/sales/grid/?cell=r1/clean",
    "/dags/sales/graph/",
    "/dags/sales/runs/",
    "/dags/sales/code/",
    "/dags/sales/details/",
    "/dags/sales/trigger/",
    "/dags/sales/clear/?run=r1",
    "/dags/sales/mark/?run=r1&state=failed",
    "/dags/sales/runs/r1/",
    "/dags/sales/runs/r1/graph/",
    "/dags/sales/runs/r1/gantt/",
    "/dags/sales/runs/r0/compare/",
    "/dags/sales/tasks/clean/",
    "/dags/sales/calendar/",
    "/dags/sales/runs/r1/tasks/load/",
    "/dags/sales/runs/r1/tasks/check/?tab=details",
    "/dags/sales/runs/r1/tasks/check/?tab=xcom",
    "/dags/sales/runs/r1/tasks/extract/",
    "/dags/sales/events/",
    "/runs/",
    "/bulk/runs/?do=clear&all=yes",
    "/task-instances/",
    "/bulk/task-instances/?do=clear&ti={ti}",
    "/timeline/",
    "/timeline/?group=tag&hours=24",
    "/bulk/dags/trigger/?dag=sales",
    "/dags/sales/runs/r1/bulk/?do=clear&ti={ti}",
    "/search/?q=sal",
    "/failures/",
    "/callbacks/",
    "/callbacks/{callback}/",
    "/deadlines/",
    "/questions/",
    "/dags/sales/runs/q1/tasks/check/",
    "/backfills/",
    "/backfills/{backfill}/",
    "/dags/sales/backfills/",
    "/dags/sales/backfills/new/?from=2026-01-01T00:00&to=2026-01-03T00:00",
    f"/failures/{FX}/",
    "/assets/",
    "/assets/{asset}/",
    "/pools/",
    "/jobs/",
    "/import-errors/",
    "/audit/",
)


#: Routes that are no page: deeds, parts of a page, files, and what a machine reads.
NO_PAGES = {
    "asset_event", "backfill_change", "callback_replay", "cell", "dag_bulk", "dag_hold", "dag_pause", "failure_clear",
    "healthz", "live", "log_download", "log_part", "login", "logout", "preferences", "question", "question_answer",
    "run_hold", "task_hold", "task_mapped", "callback_log",
}  # fmt: skip


def test_no_page_is_left_out() -> None:
    looked_at = {resolve(urlsplit(path.format(asset=1, backfill=1, callback=1, ti=1)).path).url_name for path in PAGES}
    assert looked_at == {pattern.name for pattern in urls.urlpatterns} - NO_PAGES


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_every_page_is_accessible(open_page: Callable[..., Any], scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    now = db.clock()
    params = {
        "rows": {"value": 3, "schema": {"type": "integer"}},
        "kind": {"value": "a", "schema": {"enum": ["a", "b"]}},
    }
    dag = factory.make_dag(
        "sales",
        factory.spec("sales", params=params),
        now,
        ["finance"],
        next_dagrun_run_after=now,
        timetable={"kind": "cron_trigger", "expression": "0 0 * * *", "timezone": "UTC"},
    )
    states = {"extract": "success", "clean": "failed", "check": "up_for_retry"}
    factory.make_run(dag, "r1", "running", states, now, held_at=now, held_by="bob", held_why="late")
    factory.make_run(dag, "r0", "failed", {"clean": "failed"}, now)
    ParseError.objects.create(timestamp=now, filename="x.py", stack_trace="SyntaxError")
    Audit.objects.create(when=now, event="patch_dag", owner="ann", dag_id="sales", before={"is_paused": True})
    asset = Asset.objects.create(name="orders", uri="s3://lake/orders", created_at=now, updated_at=now)
    AssetUse.objects.create(dag=dag, asset=asset, kind="outlet", task_id="load", created_at=now)
    AssetEvent.objects.create(asset=asset, timestamp=now, source_dag_id="sales", extra={"rows": 1})
    run = factory.make_run(dag, "b1", "success", at=now - timedelta(days=1))
    backfill = Backfill.objects.create(dag=dag, from_date=now, to_date=now, created_at=now, updated_at=now)
    BackfillSlot.objects.create(backfill=backfill, ordinal=1, run_after=now, outcome="created", dag_run=run)
    told = Callback.objects.create(
        kind="dag_failure", dedupe_key="x", dag_id="sales", dag_run=run, state="failed", error="no channel",
        next_at=now, created_at=now,
    )  # fmt: skip
    Deadline.objects.create(dag_id="sales", dag_run=run, kind="run", due_at=now, created_at=now, missed_at=now)
    factory.make_job("LocalTaskJob", now, executor_class="LocalExecutor", detail={"slots": 4})
    asks = factory.make_run(dag, "q1", "running", {"check": "deferred"}, now)
    asked = {
        "subject": "Ship it?",
        "body": "See **it**",
        "options": ["Yes", "No"],
        "multiple": True,
        "params": {"rows": 3},
    }
    TaskState.objects.create(
        dag_run_id=asks.pk, dag_id="sales", task_id="check", map_index=-1, key=QUESTION_KEY,
        value=wire.encode(asked, "the question"), updated_at=now,
    )  # fmt: skip
    failed = TaskInstance.objects.get(dag_run__run_id="r1", task_id="clean")
    page = open_page("/dags/", width=width, scheme=scheme, bypass_csp=True)
    found: dict[str, list[str]] = {}
    for path in PAGES:
        page.goto(path.format(asset=asset.pk, backfill=backfill.pk, callback=told.pk, ti=failed.pk))
        violations = axe.run(page).response["violations"]
        faults = [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in violations]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            faults.append("it scrolls sideways")
        if faults:
            found[path] = faults
    assert found == {}
    assert DagRun.objects.count() == 4
