"""The Django admin: lists and forms open, derived rows are read only, deeds go through actions, secrets stay in."""

from __future__ import annotations

import re

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from scheduler_app import secrets
from scheduler_app.models import (
    Audit,
    Connection,
    DagModel,
    DagRun,
    Limit,
    ParseError,
    Pool,
    TaskInstance,
    Variable,
    Wake,
)
from tests.ui import factory
from tests.ui.factory import NOW

pytestmark = pytest.mark.django_db

LISTS = (
    "audit",
    "callback",
    "connection",
    "dagmodel",
    "dagrun",
    "job",
    "limit",
    "parseerror",
    "pool",
    "taskinstance",
    "variable",
)
DERIVED = ("audit", "callback", "dagmodel", "dagrun", "job", "parseerror", "taskinstance")


@pytest.fixture(autouse=True)
def _key(settings: object) -> object:
    values = {**settings.SCHEDULER, "fernet_keys": (Fernet.generate_key().decode(),)}
    with override_settings(SCHEDULER=values):
        yield


@pytest.fixture
def run() -> DagRun:
    factory.make_job()
    ParseError.objects.create(timestamp=NOW, filename="x.py", stack_trace="SyntaxError")
    Audit.objects.create(when=NOW, event="patch_dag", owner="ann", dag_id="sales")
    return factory.make_run(factory.make_dag("sales"), "r1", "failed", {"check": "failed"})


@pytest.mark.parametrize("name", LISTS)
def test_a_list_opens_and_breaks_no_content_policy(admin: Client, run: DagRun, name: str) -> None:
    response = admin.get(f"/admin/scheduler_app/{name}/")
    html = response.content.decode()
    assert response.status_code == 200
    assert "scheduler/admin.css" in html
    assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")", html), "an inline script"
    assert not re.search(r"\son[a-z]+=\"", html), "an inline handler"
    policy = response["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("name", LISTS)
def test_a_search_opens(admin: Client, run: DagRun, name: str) -> None:
    assert admin.get(f"/admin/scheduler_app/{name}/?q=sales").status_code == 200


@pytest.mark.parametrize("name", DERIVED)
def test_derived_rows_cannot_be_added(admin: Client, name: str) -> None:
    assert admin.get(f"/admin/scheduler_app/{name}/add/").status_code == 403


@pytest.mark.parametrize("name", ["dagmodel", "dagrun", "taskinstance", "audit"])
def test_derived_rows_are_read_and_lead_to_the_dashboard(admin: Client, run: DagRun, name: str) -> None:
    links = {
        "dagmodel": ("sales", "/dags/sales/"),
        "dagrun": (run.pk, "/dags/sales/runs/r1/"),
        "taskinstance": (TaskInstance.objects.get(task_id="check").pk, "/dags/sales/runs/r1/tasks/check/"),
        "audit": (Audit.objects.get().pk, "/dags/sales/events/"),
    }
    key, link = links[name]
    html = admin.get(f"/admin/scheduler_app/{name}/{key}/change/").content.decode()
    assert f'<a href="{link}">Open in dashboard</a>' in html
    assert 'name="_save"' not in html


def do(client: Client, model: str, action: str, *keys: object) -> str:
    data = {"action": action, "_selected_action": [str(key) for key in keys]}
    return client.post(f"/admin/scheduler_app/{model}/", data, follow=True).content.decode()


def test_dags_are_paused_and_resumed_through_actions(admin: Client, run: DagRun) -> None:
    factory.make_dag("other")
    assert "2 rows were changed." in do(admin, "dagmodel", "pause_dags", "sales", "other")
    assert set(DagModel.objects.values_list("is_paused", flat=True)) == {True}
    do(admin, "dagmodel", "resume_dags", "sales")
    assert not DagModel.objects.get(pk="sales").is_paused
    assert Audit.objects.filter(event="patch_dag", before__isnull=False).count() == 3


def test_runs_are_held_and_released_through_actions(admin: Client, run: DagRun) -> None:
    do(admin, "dagrun", "hold_runs", run.pk)
    run.refresh_from_db()
    assert (run.held_by, run.held_why) == ("ann", "from the admin")
    do(admin, "dagrun", "release_runs", run.pk)
    run.refresh_from_db()
    assert run.held_at is None
    assert list(Wake.objects.values_list("reason", flat=True)) == ["run_released"]


def test_tasks_are_held_and_released_through_actions(admin: Client, run: DagRun) -> None:
    key = TaskInstance.objects.get(task_id="load").pk
    do(admin, "taskinstance", "hold_tasks", key)
    assert TaskInstance.objects.get(pk=key).held_by == "ann"
    do(admin, "taskinstance", "release_tasks", key)
    assert TaskInstance.objects.get(pk=key).held_at is None


def test_who_may_only_look_gets_no_actions(run: DagRun) -> None:
    user = get_user_model().objects.create_user("viv", password="x", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_dagmodel"))
    client = Client()
    client.force_login(user)
    assert 'value="pause_dags"' not in client.get("/admin/scheduler_app/dagmodel/").content.decode()
    do(client, "dagmodel", "pause_dags", "sales")
    assert not DagModel.objects.get(pk="sales").is_paused


def test_a_limit_is_made_changed_and_deleted_through_actions(admin: Client) -> None:
    admin.post("/admin/scheduler_app/limit/add/", {"name": "crm", "amount": "4", "per_seconds": "60"})
    row = Limit.objects.get(name="crm")
    assert (row.amount, row.per_seconds) == (4, 60.0)
    Limit.objects.update(declared_by="sales")
    path = f"/admin/scheduler_app/limit/{row.pk}/"
    admin.post(f"{path}change/", {"amount": "8", "per_seconds": "60", "description": "calls"})
    row.refresh_from_db()
    assert (row.amount, row.per_seconds, row.description, row.declared_by) == (8, 60.0, "calls", None)
    html = admin.post(f"{path}change/", {"amount": "8", "per_seconds": "-1"}, follow=True).content.decode()
    assert "The window is a number of seconds above 0" in html
    admin.post(f"{path}delete/", {"post": "yes"})
    assert not Limit.objects.exists()
    assert list(Audit.objects.order_by("pk").values_list("event", flat=True)) == [
        "post_limit",
        "patch_limit",
        "delete_limit",
    ]


def test_a_pool_is_made_changed_and_deleted_through_actions(admin: Client) -> None:
    admin.post("/admin/scheduler_app/pool/add/", {"pool": "db", "slots": "4", "description": "x"})
    pool = Pool.objects.get(pool="db")
    assert (pool.slots, pool.description) == (4, "x")
    admin.post(f"/admin/scheduler_app/pool/{pool.pk}/change/", {"pool": "db", "slots": "8", "description": "x"})
    pool.refresh_from_db()
    assert pool.slots == 8
    admin.post(f"/admin/scheduler_app/pool/{pool.pk}/delete/", {"post": "yes"})
    assert not Pool.objects.filter(pool="db").exists()
    assert list(Audit.objects.order_by("id").values_list("event", flat=True)) == [
        "post_pool",
        "patch_pool",
        "delete_pool",
    ]


def test_what_an_action_refuses_is_said_and_not_done(admin: Client) -> None:
    pool = Pool.objects.get(pool="default_pool")
    html = admin.post(f"/admin/scheduler_app/pool/{pool.pk}/delete/", {"post": "yes"}, follow=True).content.decode()
    assert "Default Pool can&#x27;t be deleted" in html
    assert Pool.objects.filter(pool="default_pool").exists()
    chosen = {"action": "delete_selected", "_selected_action": [str(pool.pk)], "post": "yes"}
    html = admin.post("/admin/scheduler_app/pool/", chosen, follow=True).content.decode()
    assert "Default Pool can&#x27;t be deleted" in html
    assert Pool.objects.filter(pool="default_pool").exists()


def test_a_variables_value_is_written_and_never_shown(admin: Client) -> None:
    admin.post("/admin/scheduler_app/variable/add/", {"key": "token", "value": "s3cr3t", "description": ""})
    variable = Variable.objects.get(key="token")
    assert secrets.decrypt(variable.value_encrypted) == "s3cr3t"
    page = f"/admin/scheduler_app/variable/{variable.pk}/change/"
    assert "s3cr3t" not in admin.get(page).content.decode()
    assert variable.value_encrypted not in admin.get(page).content.decode()
    admin.post(page, {"value": "", "description": "now told"})
    variable.refresh_from_db()
    assert (secrets.decrypt(variable.value_encrypted), variable.description) == ("s3cr3t", "now told")
    admin.post(page, {"value": "other", "description": "now told"})
    variable.refresh_from_db()
    assert secrets.decrypt(variable.value_encrypted) == "other"


def test_a_connections_secrets_are_written_and_never_shown(admin: Client) -> None:
    form = {
        "connection_id": "db",
        "conn_type": "postgres",
        "host": "h",
        "port": "5432",
        "password": "pw-1",
        "extra": '{"k": "x-1"}',
    }
    admin.post("/admin/scheduler_app/connection/add/", form)
    row = Connection.objects.get(connection_id="db")
    assert secrets.decrypt(row.password_encrypted) == "pw-1"
    assert secrets.decrypt(row.extra_encrypted) == '{"k": "x-1"}'
    page = f"/admin/scheduler_app/connection/{row.pk}/change/"
    html = admin.get(page).content.decode()
    assert "pw-1" not in html
    assert "x-1" not in html
    admin.post(page, {"conn_type": "postgres", "host": "other", "port": "5432", "password": "", "extra": ""})
    row.refresh_from_db()
    assert (row.host, secrets.decrypt(row.password_encrypted)) == ("other", "pw-1")
    assert secrets.decrypt(row.extra_encrypted) == '{"k": "x-1"}'


@pytest.mark.parametrize("name", ["dagmodel", "dagrun", "taskinstance"])
def test_a_list_asks_as_often_of_many_rows_as_of_few(admin: Client, run: DagRun, name: str) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            admin.get(f"/admin/scheduler_app/{name}/")
        assert not [one for one in queries if "count(*)" in one["sql"].lower() and "limit" not in one["sql"].lower()]
        return len(queries)

    few = cost()
    for number in range(10):
        factory.make_run(factory.make_dag(f"dag_{number}"), "r1")
    assert cost() == few
