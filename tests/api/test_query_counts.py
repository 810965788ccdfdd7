"""A list costs the same number of statements for one row and for fifty, of one DAG and of many."""

from __future__ import annotations

import pytest
import zeal
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import (
    Asset,
    AssetAlias,
    AssetEvent,
    AssetUse,
    Audit,
    Callback,
    Connection,
    DagModel,
    DagWarning,
    Job,
    Limit,
    ParseError,
    Pool,
    RenderedFields,
    TaskInstance,
    Trigger,
    Variable,
    XCom,
    transitions,
)
from scheduler_app.secrets import encrypt
from tests import rows
from tests.api.every_route import IDS, routes
from tests.rows import T0
from tests.shapes import shape

#: what a request costs before its endpoint: the user; ``ada`` is a superuser, whose permissions need no statement
LOGIN = 1
COUNTS = {
    "dags": 3,
    "dags?order_by=-last_run_start_date&tags=t": 3,
    "dags/dag0/details": 5,
    "dags/dag0/tasks": 2,
    "dags/dag0/dagVersions": 3,
    "dags/~/dagRuns": 2,
    "dags/dag0/dagRuns": 4,
    "dags/~/dagRuns?cursor=": 2,
    "dags/~/dagRuns/~/taskInstances": 3,
    "dags/dag0/dagRuns/run0/taskInstances": 4,
    "dags/dag0/dagRuns/run0/taskInstances/a": 1,
    "dags/dag0/dagRuns/run0/taskInstances/a/tries": 2,
    "dags/~/dagRuns/~/taskInstances/~/xcomEntries": 2,
    "pools": 3,
    "limits": 7,
    "variables": 2,
    "connections": 2,
    "assets": 4,
    "assets/aliases": 2,
    "assets/events": 3,
    "importErrors": 2,
    "eventLogs": 3,
    "jobs": 2,
    "callbacks": 2,
    "workers": 8,
    "dagTags": 2,
    "dagStats": 3,
    "dagWarnings": 2,
    "config": 0,
    "dags/dag0/assets/queuedEvents": 3,
}


def fill(count: int) -> None:
    """So many DAGs, each with so many runs, and so many of everything else."""
    trigger = Trigger.objects.create(classpath="a.B", created_date=T0)
    for n in range(count):
        row = rows.store(shape("a >> b >> c >> d >> e >> f >> g", f"dag{n}"), owners="ann")
        row.tags.create(name="t")
        row.tags.create(name=f"t{n}")
        DagWarning.objects.create(dag=row, warning_type="non-existent pool", message="m", timestamp=T0)
        for run in rows.trigger(row, count):
            for ti in TaskInstance.objects.filter(dag_run=run):
                RenderedFields.objects.create(task_instance=ti, fields={"x": n})
            XCom.objects.create(dag_run=run, dag_id=row.dag_id, task_id="a", key="k", value=1, timestamp=T0)
        asset = Asset.objects.create(name=f"a{n}", uri=f"u{n}", created_at=T0, updated_at=T0)
        AssetAlias.objects.create(name=f"l{n}").assets.add(asset)
        AssetUse.objects.create(dag=row, asset=asset, kind="schedule", created_at=T0)
        event = AssetEvent.objects.create(asset=asset, timestamp=T0)
        event.created_dagruns.add(run)
        Pool.objects.create(pool=f"p{n}", slots=1)
        Limit.objects.create(name=f"l{n}", amount=1, per_seconds=60.0)
        Variable.objects.create(key=f"v{n}", value_encrypted=encrypt("x"))
        Connection.objects.create(connection_id=f"c{n}", conn_type="http", extra_encrypted=encrypt("{}"))
        ParseError.objects.create(timestamp=T0, filename=f"f{n}.py", stack_trace="x")
        Audit.objects.create(when=T0, event="e", dag_id=row.dag_id)
        Job.objects.create(job_type="SchedulerJob", start_date=T0, latest_heartbeat=T0)
        worker = Job.objects.create(job_type="CeleryWorkerJob", start_date=T0, latest_heartbeat=T0)
        running = list(TaskInstance.objects.filter(dag_run=run, task_id="c").values_list("pk", flat=True))
        for verb in ("schedule", "queue", "start"):
            transitions.tasks(verb, running, T0)
        TaskInstance.objects.filter(pk__in=running).update(job_id=worker.pk)
        Callback.objects.create(
            kind="dag_failure", dedupe_key=f"k{n}", dag_id=row.dag_id, dag_run=run, next_at=T0, created_at=T0
        )
    TaskInstance.objects.filter(task_id="b").update(trigger_id=trigger.pk)


@pytest.mark.parametrize("count", [2, 7])
def test_lists_cost_a_fixed_number_of_statements(http, count):
    fill(count)
    cost = {}
    with zeal.zeal_context():
        for path in COUNTS:
            full = f"{path}{'&' if '?' in path else '?'}limit={count}"
            http.get(full)  # compiles the graphs of the versions, once for a process
            with CaptureQueriesContext(connection) as caught:
                assert http.get(full).status_code == 200
            cost[path] = len(caught) - LOGIN
    assert cost == COUNTS


def cost_of_every_read(http):
    """Statements of each GET of the table of routes; a stream is read by tests of its own."""
    found = {}
    for method, route in routes():
        if method == "GET" and not route.endswith("/wait"):
            path = route.format(**IDS | {"dag_id": "dag0", "task_id": "a"})
            http.get(path)
            with CaptureQueriesContext(connection) as caught:
                http.get(path)
            found[route] = len(caught)
    return found


def test_no_read_costs_more_statements_where_there_is_more(http):
    fill(2)
    few = cost_of_every_read(http)
    DagModel.objects.all().delete()
    Pool.objects.exclude(pool="default_pool").delete()
    for table in (Asset, AssetAlias, Limit, Variable, Connection, ParseError, Audit, Job):
        table.objects.all().delete()
    fill(9)
    assert cost_of_every_read(http) == few


def test_versions_that_are_not_compiled_yet_are_read_by_one_statement(http):
    from scheduler_app.models import graphs

    fill(5)
    graphs.forget()
    with CaptureQueriesContext(connection) as caught:
        assert http.get("dags/~/dagRuns/~/taskInstances?limit=100").status_code == 200
    assert len(caught) - LOGIN == COUNTS["dags/~/dagRuns/~/taskInstances"] + 1


def test_a_page_is_bounded_whatever_is_asked(http, settings):
    settings.SCHEDULER = {**settings.SCHEDULER, "api_page_limit": 3}
    fill(5)
    answer = http.get("dags?limit=100000").json()
    assert (len(answer["dags"]), answer["total_entries"]) == (3, 5)
    assert http.get("dags?limit=0").json() == {"dags": [], "total_entries": 5}


def test_pages_with_ties_never_overlap(http):
    fill(4)
    seen = []
    for offset in range(0, 16, 3):
        page = http.get(f"dags/~/dagRuns?limit=3&offset={offset}&order_by=state").json()
        seen += [(run["dag_id"], run["dag_run_id"]) for run in page["dag_runs"]]
    assert len(seen) == len(set(seen)) == 16
