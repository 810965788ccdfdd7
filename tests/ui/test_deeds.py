"""What people do on the pages: pause, hold, trigger, choose their zone; and the live poll that shows it to others."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import Audit, DagModel, DagRun, TaskInstance, Wake, transitions

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


# ── Pause ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_switch_pauses_and_leads_back(admin: Client) -> None:
    factory.make_dag("sales")
    response = admin.post("/dags/sales/pause/", {"paused": "yes", "next": "/dags/?show=active"})
    assert (response.status_code, response["Location"]) == (302, "/dags/?show=active")
    assert DagModel.objects.get(pk="sales").is_paused
    assert "sales is paused." in admin.get("/pools/").content.decode()
    assert [(row.event, row.owner) for row in Audit.objects.all()] == [("patch_dag", "ann")]


def test_the_switch_answers_htmx_with_itself_and_a_toast_that_undoes(admin: Client) -> None:
    factory.make_dag("sales")
    html = admin.post("/dags/sales/pause/", {"paused": "yes"}, headers=HTMX).content.decode()
    assert re.search(r'^<button class="switch"[^>]* value="no" data-pause="sales" aria-checked="false"', html)
    assert re.search(r'hx-swap-oob="beforeend:#toasts".*name="paused" value="no"><button>Undo</button>', html, re.S)


def test_unpausing_wakes_the_runs_that_waited(admin: Client) -> None:
    run = factory.make_run(factory.make_dag("sales", is_paused=True))
    admin.post("/dags/sales/pause/", {"paused": "no"})
    assert list(Wake.objects.values_list("dag_run_id", "reason")) == [(run.pk, "dag_unpaused")]


def test_a_form_leads_to_no_foreign_host(admin: Client) -> None:
    factory.make_dag("sales")
    response = admin.post("/dags/sales/pause/", {"paused": "yes", "next": "https://evil.example/"})
    assert response["Location"] == "/dags/"


def test_a_form_without_its_token_is_refused() -> None:
    factory.make_dag("sales")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(get_user_model().objects.create_superuser("eve", password="x"))
    assert strict.post("/dags/sales/pause/", {"paused": "yes"}).status_code == 403
    assert not DagModel.objects.get(pk="sales").is_paused


@pytest.mark.parametrize(
    "path",
    ["/dags/sales/pause/", "/dags/sales/hold/", "/dags/sales/runs/r1/hold/", "/me/"],
)
def test_what_changes_something_is_never_a_get(admin: Client, path: str) -> None:
    factory.make_run(factory.make_dag("sales"), "r1")
    assert admin.get(path).status_code == 405


def test_a_viewer_may_change_nothing(as_role: Callable[[str], Client]) -> None:
    factory.make_run(factory.make_dag("sales"), "r1")
    client = as_role("Viewer")
    deeds: list[tuple[str, dict[str, str]]] = [
        ("/dags/sales/pause/", {"paused": "yes"}),
        ("/dags/sales/hold/", {"do": "hold", "why": "x"}),
        ("/dags/sales/runs/r1/hold/", {"do": "hold", "why": "x"}),
        ("/dags/sales/runs/r1/tasks/load/hold/", {"do": "hold", "why": "x"}),
        ("/dags/sales/trigger/", {}),
    ]
    assert {client.post(path, data).status_code for path, data in deeds} == {403}
    assert (Audit.objects.count(), DagRun.objects.count()) == (0, 1)
    assert not DagModel.objects.get(pk="sales").is_paused


# ── Hold ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_held_with_a_reason_and_an_end_in_the_readers_zone(admin: Client) -> None:
    factory.make_run(factory.make_dag("sales"), "r1")
    admin.cookies["scheduler_zone"] = "Europe/Berlin"
    admin.post("/dags/sales/runs/r1/hold/", {"do": "hold", "why": "late feed", "until": "2030-01-31T14:30"})
    run = DagRun.objects.get()
    assert (run.held_by, run.held_why, run.held_until) == ("ann", "late feed", NOW + timedelta(minutes=90))
    html = admin.get("/dags/sales/runs/r1/").content.decode()
    assert "“late feed”" in html
    assert "2030-01-31 14:30:00 CET" in html
    assert "Release" in html


def test_a_release_ends_the_hold_and_wakes_the_run(admin: Client) -> None:
    run = factory.make_run(factory.make_dag("sales"), "r1", held_at=NOW, held_by="bob", held_why="x")
    admin.post("/dags/sales/runs/r1/hold/", {"do": "release"})
    run.refresh_from_db()
    assert run.held_at is None
    assert list(Wake.objects.values_list("reason", flat=True)) == ["run_released"]


def test_a_hold_without_a_reason_is_refused_in_words(admin: Client) -> None:
    factory.make_run(factory.make_dag("sales"), "r1")
    admin.post("/dags/sales/runs/r1/hold/", {"do": "hold", "why": " ", "next": "/dags/sales/runs/r1/"})
    assert DagRun.objects.get().held_at is None
    assert "Say why" in admin.get("/dags/sales/runs/r1/").content.decode()


def test_a_hold_until_no_date_is_refused(admin: Client) -> None:
    factory.make_run(factory.make_dag("sales"), "r1")
    response = admin.post("/dags/sales/runs/r1/hold/", {"do": "hold", "why": "x", "until": "2030-02-31T12:00"})
    assert response.status_code == 400
    assert DagRun.objects.get().held_at is None


def test_a_mapped_task_instance_is_held_by_its_index(admin: Client) -> None:
    run = factory.make_run(factory.make_dag("sales"), "r1")
    TaskInstance.objects.filter(dag_run=run, task_id="load").update(map_index=3)
    admin.post("/dags/sales/runs/r1/tasks/load/hold/", {"do": "hold", "why": "x", "map_index": "3"})
    held = TaskInstance.objects.filter(held_at__isnull=False)
    assert list(held.values_list("task_id", "map_index", "held_by")) == [("load", 3, "ann")]
    assert "“x”" in admin.get("/dags/sales/runs/r1/tasks/load/3/").content.decode()


def test_a_hold_that_has_ended_is_none(admin: Client) -> None:
    past = NOW - timedelta(minutes=1)
    factory.make_run(factory.make_dag("sales"), "r1", held_at=past, held_by="bob", held_why="x", held_until=past)
    assert "Release" not in admin.get("/dags/sales/runs/r1/").content.decode()


@pytest.mark.parametrize(("until", "marks"), [(None, 1), (NOW + timedelta(hours=1), 1), (NOW - timedelta(hours=1), 0)])
def test_lists_mark_what_is_held_now(admin: Client, until: datetime | None, marks: int) -> None:
    hold = {"held_at": NOW - timedelta(hours=2), "held_by": "bob", "held_why": "x", "held_until": until}
    factory.make_run(factory.make_dag("sales"), "r1", states={"load": "scheduled"})
    TaskInstance.objects.filter(task_id="load").update(**hold)
    assert admin.get("/dags/sales/runs/r1/").content.decode().count('title="x">held') == marks
    TaskInstance.objects.update(held_at=None)
    DagRun.objects.update(**hold)
    assert admin.get("/runs/").content.decode().count('title="x">held') == marks


def test_new_runs_of_a_dag_are_held_and_released(admin: Client) -> None:
    factory.make_dag("sales")
    admin.post("/dags/sales/hold/", {"do": "hold", "why": "month end"})
    assert DagModel.objects.get().held_why == "month end"
    admin.post("/dags/sales/hold/", {"do": "release"})
    assert DagModel.objects.get().held_at is None


# ── Trigger ──────────────────────────────────────────────────────────────────────────────────────────────────────────

PARAMS: dict[str, Any] = {
    "day": {"value": "2030-01-30", "schema": {"type": "string", "format": "date"}},
    "rows": {"value": 10, "schema": {"type": "integer", "minimum": 1, "maximum": 99}},
    "full": {"value": False, "schema": {"type": "boolean"}},
}


def test_a_form_triggers_a_run_with_its_params(admin: Client) -> None:
    factory.make_dag("sales", factory.spec("sales", params=PARAMS))
    response = admin.post(
        "/dags/sales/trigger/",
        {"param.day": "2030-01-31", "param.rows": "7", "param.full": "true", "run_id": "mine", "note": "again"},
    )
    assert response["Location"] == "/dags/sales/runs/mine/"
    run = DagRun.objects.get()
    assert run.conf == {"day": "2030-01-31", "rows": 7, "full": True}
    assert (run.note, run.triggering_user_name, run.triggered_by, run.state) == ("again", "ann", "ui", "queued")
    assert TaskInstance.objects.filter(dag_run=run).count() == 4


def test_a_value_that_breaks_its_schema_is_told_beside_its_field_and_kept(admin: Client) -> None:
    factory.make_dag("sales", factory.spec("sales", params=PARAMS))
    response = admin.post("/dags/sales/trigger/", {"param.day": "2030-01-31", "param.rows": "100"})
    html = response.content.decode()
    assert response.status_code == 400
    assert 'name="param.rows" value="100"' in html
    assert re.search(r'role="alert"[^>]*>Param &#x27;rows&#x27; is not valid', html)
    assert not DagRun.objects.exists()


def test_raw_json_goes_before_the_fields(admin: Client) -> None:
    factory.make_dag("sales", factory.spec("sales", params=PARAMS))
    admin.post("/dags/sales/trigger/", {"param.rows": "7", "conf": '{"rows": 8, "more": [1]}'})
    assert DagRun.objects.get().conf == {"rows": 8, "more": [1]}


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_broken_json_is_told_and_kept(admin: Client, text: str) -> None:
    factory.make_dag("sales")
    response = admin.post("/dags/sales/trigger/", {"conf": text})
    assert response.status_code == 400
    assert f">{text}</textarea>" in response.content.decode()
    assert not DagRun.objects.exists()


def test_a_taken_run_id_is_told(admin: Client) -> None:
    factory.make_run(factory.make_dag("sales"), "r1")
    response = admin.post("/dags/sales/trigger/", {"run_id": "r1"})
    assert response.status_code == 400
    assert "already exists" in response.content.decode()


def test_a_paused_dag_can_be_switched_on_with_the_run(admin: Client) -> None:
    factory.make_dag("sales", is_paused=True)
    admin.post("/dags/sales/trigger/", {"unpause": "yes"})
    assert not DagModel.objects.get().is_paused


def test_trigger_again_starts_from_the_former_runs_conf(admin: Client) -> None:
    factory.make_run(factory.make_dag("sales", factory.spec("sales", params=PARAMS)), "r1", conf={"rows": 42})
    html = admin.get("/dags/sales/trigger/?from=r1&param.day=2029-12-31").content.decode()
    assert 'name="param.rows" value="42"' in html
    assert 'name="param.day" value="2029-12-31"' in html


# ── Preferences ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_zone_theme_and_density_are_kept(admin: Client) -> None:
    admin.post("/me/", {"zone": "Asia/Tokyo", "theme": "dark", "density": "compact", "next": "/dags/"})
    html = admin.get("/dags/").content.decode()
    assert '<html lang="en" data-theme="dark" data-density="compact">' in html
    assert "Asia/Tokyo" in html


def test_an_unknown_zone_is_refused(admin: Client) -> None:
    assert admin.post("/me/", {"zone": "Mars/Base", "theme": "dark", "density": "compact"}).status_code == 400


# ── Live ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def token(client: Client, path: str) -> tuple[str, str]:
    html = client.get(path).content.decode()
    found = re.search(r'data-page="([^"]+)" data-token="([^"]+)"', html)
    assert found is not None
    return found[1], found[2]


@pytest.mark.parametrize("path", ["/dags/", "/dags/sales/runs/r1/", "/dags/sales/runs/r1/tasks/load/"])
def test_nothing_new_is_an_empty_answer_of_few_queries(admin: Client, path: str) -> None:
    factory.make_run(factory.make_dag("sales"), "r1")
    page, mark = token(admin, path)
    with CaptureQueriesContext(connection) as queries:
        response = admin.get("/live/", {"page": page, "token": mark})
    assert (response.status_code, response.content) == (204, b"")
    assert len(queries) == 3, "session, user, and one of its own"


def test_a_task_that_moved_is_told_in_place(admin: Client) -> None:
    run = factory.make_run(factory.make_dag("sales"), "r1", "running", {"extract": "running"})
    page, mark = token(admin, "/dags/sales/runs/r1/")
    extract = TaskInstance.objects.get(dag_run=run, task_id="extract")
    transitions.tasks("succeed", [extract.pk], NOW)
    answer = admin.get("/live/", {"page": page, "token": mark}).json()
    assert answer["set"][f"ti-{extract.pk}"] == ["success", "Success"]
    assert answer["refresh"] == ["run-head", "run-chips", "run-gantt"]
    assert answer["v"] == token(admin, "/dags/sales/runs/r1/")[1]


def test_a_run_that_ended_refreshes_its_parts(admin: Client) -> None:
    run = factory.make_run(factory.make_dag("sales"), "r1", "running")
    page, mark = token(admin, "/dags/sales/runs/r1/")
    transitions.runs("succeed", [run.pk], NOW)
    answer = admin.get("/live/", {"page": page, "token": mark}).json()
    assert answer["refresh"] == ["run-head", "run-chips", "run-tasks", "run-facts", "run-gantt"]


def test_a_pause_by_somebody_else_changes_the_list(admin: Client) -> None:
    factory.make_dag("sales")
    page, mark = token(admin, "/dags/")
    DagModel.objects.update(is_paused=True)
    assert admin.get("/live/", {"page": page, "token": mark}).json()["refresh"] == ["dags"]


@pytest.mark.parametrize("page", ["dags", "run:sales/r1", "task:1"])
def test_a_poll_is_refused_to_nobody_and_to_those_without_permission(
    client: Client, as_role: Callable[[str], Client], page: str
) -> None:
    factory.make_run(factory.make_dag("sales"), "r1")
    assert client.get("/live/", {"page": page}).status_code == 401
    assert as_role("").get("/live/", {"page": page}).status_code == 404


@pytest.mark.parametrize("page", ["", "no", "run:sales/none", "run:", "task:x", "task:99999999999999999999"])
def test_a_poll_for_what_does_not_exist_is_not_found(admin: Client, page: str) -> None:
    assert admin.get("/live/", {"page": page, "token": "x"}).status_code == 404
