"""Every page, as the four roles and as nobody: what it shows, what it costs, and what it must never hold."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import DagModel, DagRun, ParseError, Pool, TaskInstance

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db

PAGES = (
    "/",
    "/dags/",
    "/dags/sales/",
    "/dags/sales/grid/",
    "/dags/sales/graph/",
    "/dags/sales/runs/",
    "/dags/sales/code/",
    "/dags/sales/details/",
    "/dags/sales/trigger/",
    "/dags/sales/runs/r1/",
    "/dags/sales/runs/r1/graph/",
    "/dags/sales/runs/r1/gantt/",
    "/dags/sales/runs/r1/compare/",
    "/dags/sales/tasks/load/",
    "/dags/sales/calendar/",
    "/dags/sales/runs/r1/tasks/load/",
    "/dags/sales/runs/r1/tasks/load/?tab=xcom",
    "/dags/sales/runs/r1/tasks/load/?tab=rendered",
    "/dags/sales/runs/r1/tasks/load/?tab=details",
    "/runs/",
    "/task-instances/",
    "/timeline/",
    "/search/?q=sal",
    "/failures/",
    "/callbacks/",
    "/deadlines/",
    "/questions/",
    "/backfills/",
    "/dags/sales/backfills/",
    "/dags/sales/backfills/new/",
    "/assets/",
    "/pools/",
    "/jobs/",
    "/import-errors/",
    "/audit/",
    "/dags/sales/events/",
)
FAILED = {"extract": "success", "clean": "success", "check": "failed", "load": "upstream_failed"}


@pytest.fixture
def sales() -> DagRun:
    dag = factory.make_dag("sales", tags=["finance"], next_dagrun_run_after=NOW + timedelta(minutes=4))
    return factory.make_run(dag, "r1", "failed", FAILED, NOW - timedelta(minutes=5))


def body(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path)
    assert response.status_code == status, (path, response.content[:500])
    return response.content.decode()


def count(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        body(client, path)
    return len(queries)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_itself_to_an_administrator(admin: Client, sales: DagRun, path: str) -> None:
    assert "<h1>" in body(admin, path)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_plain_and_keeps_to_itself(admin: Client, sales: DagRun, path: str) -> None:
    html = body(admin, path)
    assert " style=" not in html
    assert not re.search(r"<script(?![^>]*\bsrc=)", html), "an inline script"
    assert not re.search(r"\bon[a-z]+=\"", html), "an inline handler"
    assert not re.search(r"(?:src|href|action)=\"(?:https?:)?//", html), "a foreign host"
    assert html.count("<h1") == 1
    assert not re.search(r"<button[^>]*>\s*<svg[^>]*>(?:(?!</svg>).)*</svg>\s*</button>", html) or "aria-label" in html


@pytest.mark.parametrize("path", PAGES)
def test_nobody_sees_a_page_without_logging_in(client: Client, sales: DagRun, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 302
    assert response["Location"].startswith("/login/?next=")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_cannot_be_posted_to(admin: Client, sales: DagRun, path: str) -> None:
    if not path.endswith(("/trigger/", "/new/")):
        assert admin.post(path).status_code == 405


def test_a_user_without_a_role_is_told_which_permission_is_missing(
    as_role: Callable[[str], Client], sales: DagRun
) -> None:
    assert "scheduler_app.view_dagmodel" in body(as_role(""), "/dags/", 403)


@pytest.mark.parametrize(
    ("role", "refused"),
    [
        ("Viewer", {"/audit/", "/dags/sales/events/", "/dags/sales/trigger/", "/dags/sales/backfills/new/"}),
        ("User", {"/audit/", "/dags/sales/events/"}),
        ("Op", set()),
        ("Admin", set()),
    ],
)
def test_each_role_sees_its_pages(
    as_role: Callable[[str], Client], sales: DagRun, role: str, refused: set[str]
) -> None:
    client = as_role(role)
    assert {path for path in PAGES if client.get(path).status_code != 200} == refused


def test_a_viewer_gets_no_controls(as_role: Callable[[str], Client], sales: DagRun) -> None:
    client = as_role("Viewer")
    listed = body(client, "/dags/")
    assert "/dags/sales/trigger/" not in listed
    assert re.search(r'<button class="switch"[^>]* disabled', listed)
    assert "/hold/" not in body(client, "/dags/sales/runs/r1/")


@pytest.mark.parametrize(
    "path",
    [
        "/dags/none/",
        "/dags/sales/runs/none/",
        "/dags/sales/runs/r1/tasks/none/",
        "/dags/sales/runs/r1/tasks/load/7/",
        "/dags/sales/code/?version=99",
        "/dags/sales/graph/?run=none",
        "/dags/sales/runs/r1/tasks/load/log/",
    ],
)
def test_what_does_not_exist_is_not_found(admin: Client, sales: DagRun, path: str) -> None:
    assert admin.get(path).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/dags/?page=-1&q=%22&show=no&order=no",
        "/dags/?page=99999999999999999999",
        "/runs/?page=x&state=no&type=no&day=no",
        "/dags/sales/tasks/load/?runs=no",
        "/task-instances/?page=x&state=no&hours=no",
        "/dags/sales/runs/r1/?state=no&page=9",
        "/dags/sales/grid/?runs=no&before=x&closed=no",
        "/dags/sales/graph/?closed=no",
        "/dags/sales/runs/r1/tasks/check/?try=99&from=x&before=-1&level=no&tab=no",
        "/dags/sales/code/?version=x",
        "/audit/?owner=nobody&page=0",
    ],
)
def test_odd_parameters_are_no_error(admin: Client, sales: DagRun, path: str) -> None:
    body(admin, path)


@pytest.mark.parametrize("path", ["/audit/?owner=%00", "/dags/%00/", "/dags/?q=%00"])
def test_a_nul_sign_is_a_bad_request(admin: Client, path: str) -> None:
    body(admin, path, 400)


# ── What it costs ────────────────────────────────────────────────────────────────────────────────────────────────────


def fill(dags: int, runs: int) -> None:
    for number in range(dags):
        dag = factory.make_dag(f"dag_{number:03}", tags=["a", "b"], next_dagrun_run_after=NOW)
        for back in range(runs):
            state = "failed" if back % 3 == 0 else "success"
            factory.make_run(dag, f"r{back}", state, {"check": "failed"}, NOW - timedelta(hours=back))


#: Queries of a page for a superuser: two for session and user, one for the scheduler's heartbeat, the rest its own.
COSTS = {
    "/": 17,
    "/dags/": 6,
    "/runs/": 4,
    "/dags/dag_000/": 12,
    "/dags/dag_000/grid/": 6,
    "/dags/dag_000/graph/": 6,
    "/dags/dag_000/runs/": 5,
    "/dags/dag_000/runs/r0/": 8,
    "/dags/dag_000/runs/r0/tasks/check/": 10,
    "/search/?q=dag": 5,
    "/pools/": 8,
    "/jobs/": 9,
    "/audit/": 4,
}


def test_a_page_asks_as_often_of_many_rows_as_of_few(admin: Client) -> None:
    factory.make_job()
    fill(2, 2)
    few = {path: count(admin, path) for path in COSTS}
    DagModel.objects.all().delete()
    fill(20, 20)
    many = {path: count(admin, path) for path in COSTS}
    assert few == many
    assert {path: cost for path, cost in many.items() if cost > COSTS[path]} == {}


def test_a_page_of_fifty_dags_is_small(admin: Client) -> None:
    factory.make_job()
    fill(50, 14)
    html = admin.get("/dags/").content
    assert len(html) <= 150_000
    assert len(gzip.compress(html)) <= 15_000


def test_the_first_visit_loads_little() -> None:
    names = ("scheduler/ui.css", "scheduler/ui-states.css", "scheduler/ui.js", "scheduler/live.js", "scheduler/log.js",
             "scheduler/graph.js", "scheduler/mark.svg", "django_htmx/htmx-2.min.js")  # fmt: skip
    files = [finders.find(name) for name in names]
    assert sum(len(gzip.compress(Path(file).read_bytes())) for file in files) <= 40_000


# ── The list ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def chips(html: str) -> dict[str, int]:
    found = re.findall(r'<a class="chip" href="\?show=(\w+)[^>]*>(?:<[^>]*>)?[^<]*(?:</span>)? <b>(\d+)</b>', html)
    return {name: int(number) for name, number in found}


def rows(html: str) -> list[str]:
    return re.findall(r'<a class="id" href="/dags/([^/]+)/"', html)


def test_chips_count_and_choose(admin: Client) -> None:
    healthy = factory.make_dag("healthy")
    factory.make_run(healthy, state="success")
    broken = factory.make_dag("broken")
    factory.make_run(broken, "r1", "success", at=NOW - timedelta(hours=2))
    factory.make_run(broken, "r2", "failed", at=NOW - timedelta(hours=1))
    factory.make_run(factory.make_dag("busy"), state="running")
    factory.make_dag("asleep", is_paused=True)
    factory.make_dag("late", next_dagrun_run_after=NOW - timedelta(minutes=2))
    factory.make_dag("gone", is_stale=True)
    html = body(admin, "/dags/")
    assert chips(html) == {"all": 5, "failed": 1, "running": 1, "late": 1, "active": 4, "paused": 1}
    assert rows(html) == ["asleep", "broken", "busy", "healthy", "late"]
    assert rows(body(admin, "/dags/?show=failed")) == ["broken"]
    assert rows(body(admin, "/dags/?show=late")) == ["late"]
    assert rows(body(admin, "/dags/?q=state:running")) == ["busy"]
    assert rows(body(admin, "/dags/?q=paused:yes")) == ["asleep"]


def test_the_filter_box_finds_by_text_tag_and_owner(admin: Client) -> None:
    factory.make_dag("sales", tags=["finance", "eu"], owners="ann")
    factory.make_dag("stock", tags=["finance"], owners="bob")
    assert rows(body(admin, "/dags/?q=tag:finance")) == ["sales", "stock"]
    assert rows(body(admin, "/dags/?q=tag:finance+tag:eu")) == ["sales"]
    assert rows(body(admin, "/dags/?q=owner:bob")) == ["stock"]
    assert rows(body(admin, "/dags/?q=ALE")) == ["sales"]


def test_a_filter_without_a_hit_names_itself(admin: Client) -> None:
    factory.make_dag("sales")
    html = body(admin, "/dags/?q=nothing&show=failed")
    assert "Nothing fits “nothing” and the chip “Failed”." in html


def test_the_list_is_paged(admin: Client) -> None:
    for number in range(51):
        factory.make_dag(f"dag_{number:02}")
    assert len(rows(body(admin, "/dags/"))) == 50
    assert rows(body(admin, "/dags/?page=2")) == ["dag_50"]


def test_bars_tell_state_and_duration(admin: Client) -> None:
    dag = factory.make_dag("sales")
    factory.make_run(dag, "long", "success", at=NOW - timedelta(hours=2), seconds=100)
    factory.make_run(dag, "short", "failed", at=NOW - timedelta(hours=1), seconds=50)
    html = body(admin, "/dags/")
    bars = re.findall(r'<path class="s-(\w+)" d="M[\d.]+ 24V(\d+)(m-1.5 0.5h3)?"/>', html)
    assert bars == [("success", "4", ""), ("failed", "14", "m-1.5 0.5h3")]
    assert "<title>Failed, 01-31 11:00, 50 s</title>" in html


# ── Empty states that diagnose ───────────────────────────────────────────────────────────────────────────────────────


def test_without_a_dag_the_list_says_where_files_go_and_that_nobody_reads_them(admin: Client, settings: Any) -> None:
    html = body(admin, "/dags/")
    assert f"DAG files are read from <code>{settings.SCHEDULER['home']}/dags</code>." in html
    assert "python manage.py rundagprocessor" in html


def test_without_a_scheduler_every_page_says_how_to_start_one(admin: Client) -> None:
    assert "python manage.py runscheduler" in body(admin, "/pools/")
    factory.make_job(latest_heartbeat=NOW - timedelta(seconds=31))
    assert "python manage.py runscheduler" in body(admin, "/pools/")
    factory.make_job(latest_heartbeat=NOW - timedelta(seconds=1))
    assert "python manage.py runscheduler" not in body(admin, "/pools/")


def test_all_paused_says_so_on_the_start_page(admin: Client) -> None:
    factory.make_dag("a", is_paused=True)
    factory.make_dag("b", is_paused=True)
    assert "2 DAGs, all paused." in body(admin, "/")


def test_a_paused_dag_with_a_running_run_says_why_nothing_moves(admin: Client) -> None:
    factory.make_run(factory.make_dag("sales", is_paused=True), "r1", "running")
    assert "The DAG is paused, so this run does not go on." in body(admin, "/dags/sales/runs/r1/")


def test_the_start_page_names_what_is_wrong(admin: Client, sales: DagRun) -> None:
    factory.make_job()
    ParseError.objects.create(timestamp=NOW, filename="x.py", stack_trace="SyntaxError")
    factory.make_dag("late", next_dagrun_run_after=NOW - timedelta(minutes=9))
    html = body(admin, "/")
    assert 'href="/dags/sales/runs/r1/tasks/check/">check</a>' in html
    assert "KeyError: &#x27;fx&#x27;" in html
    assert re.search(r"late,\s+<time[^>]*>9 min ago", html)


# ── Run and task ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_shows_its_tasks_and_counts_them_by_state(admin: Client, sales: DagRun) -> None:
    html = body(admin, "/dags/sales/runs/r1/")
    found = re.findall(r'href="\?state=(\w+)"[^>]*><span class="st s-\w+">[^<]+</span> <b>(\d)</b>', html)
    assert found == [("failed", "1"), ("upstream_failed", "1"), ("success", "2")]
    assert re.findall(r'<a class="id" href="/dags/sales/runs/r1/tasks/(\w+)/"', html) == [
        "extract",
        "clean",
        "check",
        "load",
    ]
    only = body(admin, "/dags/sales/runs/r1/?state=failed")
    assert re.findall(r'<a class="id" href="/dags/sales/runs/r1/tasks/(\w+)/"', only) == ["check"]


def test_a_failed_run_names_the_tasks_that_failed_by_themselves_first(admin: Client, sales: DagRun) -> None:
    TaskInstance.objects.filter(task_id="check").update(reason="\nKeyError: 'fx'\nTry 1 of 1 failed; no try is left.")
    html = body(admin, "/dags/sales/runs/r1/")
    told = re.findall(r'<ul class="names one culprits">(.*?)</ul>', html)[0]
    assert re.sub(r"<[^>]+>", "", told) == "check failed: KeyError: &#x27;fx&#x27;"
    names = [f"t{number}" for number in range(5)]
    many = factory.make_dag("many", factory.spec("many", f"[{', '.join(names)}] >> last"))
    factory.make_run(many, "r2", "failed", dict.fromkeys(names, "failed"))
    told = re.findall(r'<ul class="names one culprits">(.*?)</ul>', body(admin, "/dags/many/runs/r2/"))[0]
    assert re.findall(r"<li>(?:<a[^>]*>)?([\w ]+)", told) == ["t0", "t1", "t2", "and others"]
    assert 'href="?state=failed"' in told


def test_a_task_that_waits_says_for_what(admin: Client) -> None:
    factory.make_job()
    factory.make_run(factory.make_dag("sales"), "r1", "running", {"extract": "success", "clean": "running"})
    html = body(admin, "/dags/sales/runs/r1/tasks/load/")
    assert "Why is it not running?" in html
    assert "It waits for every upstream to succeed; clean (running), check (not scheduled) have not ended." in html
    assert "This task has not started yet, so it has no log." in html


def test_a_scheduled_task_names_the_full_pool_and_its_place(admin: Client) -> None:
    factory.make_job()
    factory.make_job("LocalTaskJob", executor_class="LocalExecutor", detail={"slots": 8})
    Pool.objects.create(pool="narrow", slots=1)
    states = {"extract": "success", "clean": "running", "check": "scheduled"}
    run = factory.make_run(factory.make_dag("sales"), "r1", "running", states)
    TaskInstance.objects.filter(dag_run=run).update(pool="narrow")
    html = body(admin, "/dags/sales/runs/r1/tasks/check/")
    assert "Pool narrow" in html
    assert "It is the next in pool narrow." in html


def test_the_log_is_shown_with_levels_and_its_error(admin: Client, sales: DagRun, log_folder: Path) -> None:
    instance = TaskInstance.objects.select_related("dag_run").get(task_id="check")
    factory.make_log(log_folder, instance, factory.log_lines(10))
    html = body(admin, "/dags/sales/runs/r1/tasks/check/")
    assert html.count('class="l-info"') == 9
    assert "KeyError: &#x27;fx&#x27;" in html
    only = body(admin, "/dags/sales/runs/r1/tasks/check/?level=warning")
    assert (only.count('class="l-warning"'), only.count('class="l-error"'), only.count('class="l-info"')) == (1, 1, 0)


def test_the_log_can_be_followed_and_downloaded(admin: Client, sales: DagRun, log_folder: Path) -> None:
    instance = TaskInstance.objects.select_related("dag_run").get(task_id="check")
    file = factory.make_log(log_folder, instance, factory.log_lines(3))
    size = file.stat().st_size
    part = admin.get(f"/dags/sales/runs/r1/tasks/check/log/?from={size}")
    assert (part["X-Next"], part["X-Live"], part.content.strip()) == (str(size), "no", b"")
    first = admin.get("/dags/sales/runs/r1/tasks/check/log/?from=0")
    assert first.content.count(b"<li ") == 4
    whole = admin.get("/dags/sales/runs/r1/tasks/check/log/download/")
    assert b"".join(whole) == file.read_bytes()
    assert whole["Content-Disposition"] == 'attachment; filename="sales.check.1.log"'


def test_text_in_a_log_is_text(admin: Client, sales: DagRun, log_folder: Path) -> None:
    instance = TaskInstance.objects.select_related("dag_run").get(task_id="check")
    factory.make_log(log_folder, instance, [{"event": "<script>alert(1)</script>", "level": "info"}])
    assert "<script>alert" not in body(admin, "/dags/sales/runs/r1/tasks/check/")


def test_times_are_shown_in_the_readers_zone(admin: Client, sales: DagRun) -> None:
    admin.cookies["scheduler_zone"] = "Asia/Tokyo"
    assert "2030-01-31 20:55:00 JST" in body(admin, "/dags/sales/runs/r1/")
    admin.cookies["scheduler_zone"] = "No/Where"
    assert "2030-01-31 11:55:00 UTC" in body(admin, "/dags/sales/runs/r1/")


def test_a_dag_shows_its_last_failure_with_the_end_of_its_log(admin: Client, sales: DagRun, log_folder: Path) -> None:
    instance = TaskInstance.objects.select_related("dag_run").get(task_id="check")
    factory.make_log(log_folder, instance, factory.log_lines(30))
    html = body(admin, "/dags/sales/")
    assert re.search(r"Last failure.*?/runs/r1/tasks/check/.*?KeyError", html, re.S)
    assert html.count("<li id=") == 12


def test_the_grid_shows_each_task_of_each_run(admin: Client, sales: DagRun) -> None:
    html = body(admin, "/dags/sales/grid/")
    assert re.findall(r'<i class="cell s-(\w+)">', html) == ["success", "success", "failed", "upstream_failed"]


def test_the_graph_has_a_node_for_each_task_and_a_line_for_each_edge(admin: Client, sales: DagRun) -> None:
    html = body(admin, "/dags/sales/graph/")
    assert re.findall(r'<g class="node s-(\w+)" data-node="(\w+)">', html) == [
        ("success", "extract"),
        ("success", "clean"),
        ("failed", "check"),
        ("upstream_failed", "load"),
    ]
    assert html.count('<path class="wire"') == 4


def test_a_group_is_closed_and_opened_by_its_link(admin: Client) -> None:
    dag = factory.make_dag("big", factory.grouped("big", 2, 3, random.Random(1)))
    factory.make_run(dag, "r1")

    def lines(query: str) -> list[str]:
        return re.findall(r'<th scope="row" class="d(\d)', body(admin, f"/dags/big/grid/{query}"))

    assert lines("") == ["0", "1", "1", "1", "0", "1", "1", "1"]
    link = re.search(r'<a href="(\?closed=[^"]+)" aria-expanded="true">▾ step_0', body(admin, "/dags/big/grid/"))
    assert link is not None
    assert lines(link[1]) == ["0", "0", "1", "1", "1"]
    back = re.search(
        r'<a href="(\?closed=[^"]+)" aria-expanded="false">▸ step_0', body(admin, f"/dags/big/grid/{link[1]}")
    )
    assert back is not None
    assert len(lines(back[1])) == 8


def test_a_large_graph_starts_with_its_groups_closed_and_can_be_opened(admin: Client) -> None:
    factory.make_dag("big", factory.grouped("big", 8, 8, random.Random(1)))

    def nodes(query: str = "") -> int:
        return len(re.findall(r'data-node="', body(admin, f"/dags/big/graph/{query}")))

    assert nodes() == 8
    assert nodes("?closed=step_0") == 57
    assert nodes("?closed=-") == 64


# ── Health ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_health_needs_no_login_and_tells_of_a_dead_scheduler(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (503, {"database": "healthy", "scheduler": "unhealthy"})
    factory.make_job()
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"database": "healthy", "scheduler": "healthy"})


def test_the_trigger_form_asks_in_the_order_of_the_file(admin: Client) -> None:
    params = {name: {"value": 1, "schema": {"type": "integer"}} for name in ("rows", "a", "kind")}
    factory.make_dag("sales", factory.spec("sales", params=params, param_order=("rows", "kind", "a")))
    html = body(admin, "/dags/sales/trigger/")
    assert re.findall(r'name="param\.(\w+)"', html) == ["rows", "kind", "a"]
