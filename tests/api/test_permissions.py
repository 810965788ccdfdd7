"""Who may do what: four roles against every endpoint, and what happens without credentials."""

from __future__ import annotations

import itertools

import pytest

from scheduler_app.access import KINDS, ROLES, of_user
from scheduler_app.access.permissions import codename
from scheduler_app.models import Asset, AssetEvent, AssetQueuedEvent, AssetUse, Audit, Connection, ParseError, Variable
from scheduler_app.secrets import encrypt
from tests.rows import T0

VIEWER, USER, OP, ADMIN = "Viewer", "User", "Op", "Admin"
RANK = [VIEWER, USER, OP, ADMIN]
TI = "dags/etl/dagRuns/run0/taskInstances"
CONNECTION = {"connection_id": "pg", "conn_type": "postgres"}

#: (method, path, body, the least role that may)
MATRIX = [
    ("GET", "dags", None, VIEWER),
    ("PATCH", "dags", {"is_paused": True}, USER),
    ("GET", "dags/etl", None, VIEWER),
    ("PATCH", "dags/etl", {"is_paused": True}, USER),
    ("GET", "dags/etl/details", None, VIEWER),
    ("GET", "dags/etl/tasks", None, VIEWER),
    ("GET", "dags/etl/tasks/load", None, VIEWER),
    ("GET", "dags/etl/dagVersions", None, VIEWER),
    ("GET", "dags/etl/dagVersions/1", None, VIEWER),
    ("GET", "dagTags", None, VIEWER),
    ("GET", "dagStats", None, VIEWER),
    ("GET", "dagWarnings", None, VIEWER),
    ("GET", "dags/~/dagRuns", None, VIEWER),
    ("POST", "dags/~/dagRuns/list", {}, VIEWER),
    ("POST", "dags/etl/dagRuns", {"logical_date": None}, USER),
    ("GET", "dags/etl/dagRuns/run0", None, VIEWER),
    ("PATCH", "dags/etl/dagRuns/run0", {"note": "x"}, USER),
    ("POST", "dags/etl/dagRuns/run0/clear", {}, USER),
    ("GET", "dags/etl/dagRuns/run0/upstreamAssetEvents", None, VIEWER),
    ("POST", "dags/etl/clearTaskInstances", {"dag_run_id": "run0"}, USER),
    ("GET", TI, None, VIEWER),
    ("POST", "dags/~/dagRuns/~/taskInstances/list", {}, VIEWER),
    ("GET", f"{TI}/load", None, VIEWER),
    ("PATCH", f"{TI}/load", {"note": "x"}, USER),
    ("PATCH", f"{TI}/load/dry_run", {"new_state": "success"}, USER),
    ("GET", f"{TI}/load/tries", None, VIEWER),
    ("GET", f"{TI}/load/links", None, VIEWER),
    ("GET", f"{TI}/load/dependencies", None, VIEWER),
    ("GET", f"{TI}/load/xcomEntries", None, VIEWER),
    ("POST", f"{TI}/load/xcomEntries", {"key": "k", "value": 1}, USER),
    ("GET", "pools", None, VIEWER),
    ("GET", "pools/default_pool", None, VIEWER),
    ("POST", "pools", {"name": "p", "slots": 1}, OP),
    ("PATCH", "pools/default_pool", {"slots": 3}, OP),
    ("GET", "variables", None, OP),
    ("GET", "variables/v", None, OP),
    ("POST", "variables", {"key": "w", "value": "1"}, OP),
    ("PATCH", "variables/v", {"key": "v", "value": "2"}, OP),
    ("DELETE", "variables/v", None, OP),
    ("GET", "connections", None, OP),
    ("GET", "connections/pg", None, OP),
    ("POST", "connections", {**CONNECTION, "connection_id": "new"}, OP),
    ("PATCH", "connections/pg", CONNECTION, OP),
    ("DELETE", "connections/pg", None, OP),
    ("GET", "assets", None, VIEWER),
    ("GET", "assets/1", None, VIEWER),
    ("GET", "assets/aliases", None, VIEWER),
    ("GET", "assets/events", None, VIEWER),
    ("POST", "assets/events", {"asset_id": 1}, USER),
    ("GET", "assets/1/queuedEvents", None, VIEWER),
    ("GET", "dags/etl/assets/queuedEvents", None, VIEWER),
    ("DELETE", "dags/etl/assets/queuedEvents", None, USER),
    ("PATCH", "pools", {"actions": []}, OP),
    ("PATCH", "variables", {"actions": []}, OP),
    ("PATCH", "connections", {"actions": []}, OP),
    ("PATCH", "dags/etl/dagRuns", {"actions": []}, USER),
    ("PATCH", TI, {"actions": []}, USER),
    ("POST", "dags/etl/clearDagRuns", {"dag_runs": [{"dag_run_id": "run0"}]}, USER),
    ("POST", "assets/1/materialize", {}, USER),
    ("DELETE", f"{TI}/check", None, USER),
    ("GET", "importErrors", None, VIEWER),
    ("GET", "jobs", None, VIEWER),
    ("GET", "eventLogs", None, OP),
    ("GET", "config", None, OP),
    ("GET", "providers", None, VIEWER),
    ("GET", "plugins", None, VIEWER),
    ("DELETE", "dags/etl/dagRuns/run0", None, USER),
    ("DELETE", "dags/etl", None, USER),
]


@pytest.fixture
def world(etl, run):
    asset = Asset.objects.create(pk=1, name="lake", uri="s3://lake", created_at=T0, updated_at=T0)
    event = AssetEvent.objects.create(asset=asset, timestamp=T0)
    AssetQueuedEvent.objects.create(dag=etl, asset=asset, event=event, created_at=T0)
    AssetUse.objects.create(dag=etl, asset=asset, kind="outlet", task_id="load", created_at=T0)
    Variable.objects.create(key="v", value_encrypted=encrypt("1"))
    Connection.objects.create(connection_id="pg", conn_type="postgres")
    ParseError.objects.create(timestamp=T0, filename="bad.py", stack_trace="SyntaxError")


@pytest.mark.parametrize("role", RANK)
def test_each_role_may_do_what_the_table_says_and_no_more(world, as_role, role):
    person = as_role(role)
    for method, path, body, least in MATRIX:
        status = person(method, path, body).status_code
        if RANK.index(role) >= RANK.index(least):
            assert 200 <= status < 300, (method, path, status)
        else:
            assert status == 403, (method, path, status)


def test_nobody_gets_in_without_credentials(world, as_role):
    nobody = as_role(None)
    for method, path, body, _ in MATRIX:
        answer = nobody(method, path, body)
        assert (answer.status_code, "detail" in answer.json()) == (401, True), (method, path)
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert Audit.objects.count() == 0


def test_a_person_without_a_group_may_nothing(db):
    from django.contrib.auth.models import User

    from tests.api.conftest import Http

    stranger = Http(User.objects.create_user("stranger"))
    assert stranger.get("dags").status_code == 403


def test_the_groups_of_the_migration_are_those_of_the_table(db):
    from django.contrib.auth.models import Group

    for role, codes in ROLES.items():
        group = Group.objects.get(name=role)
        have = {f"scheduler_app.{permission.codename}" for permission in group.permissions.all()}
        want = {codename(*code.split("_", 1)) for code in codes}
        assert have == want, role


def test_roles_only_grow():
    for less, more in itertools.pairwise(RANK):
        assert ROLES[less] < ROLES[more]
    assert len(ROLES[ADMIN]) == 4 * len(KINDS)


def only_etl(actor, verb):
    """A per-DAG rule: nobody changes a DAG, and "other" is not even seen."""
    from django.db.models import Q

    return ~Q(dag_id="other") if verb == "view" else Q(pk__in=[])


def test_a_rule_of_the_site_hides_dags_and_forbids_to_change_them(settings, etl, run, as_role):
    from tests import rows
    from tests.shapes import shape

    other = rows.store(shape("a", "other"))
    rows.trigger(other)
    settings.SCHEDULER = {**settings.SCHEDULER, "dag_access": f"{__name__}.only_etl"}
    person = as_role(ADMIN)
    assert [dag["dag_id"] for dag in person.get("dags").json()["dags"]] == ["etl"]
    assert person.get("dags/other").status_code == 404
    assert {r["dag_id"] for r in person.get("dags/~/dagRuns").json()["dag_runs"]} == {"etl"}
    assert {t["dag_id"] for t in person.get("dags/~/dagRuns/~/taskInstances").json()["task_instances"]} == {"etl"}
    assert person.patch("dags/etl", {"is_paused": True}).status_code == 403
    assert person.patch("dags/other", {"is_paused": True}).status_code == 404
    assert person.post("dags/etl/dagRuns", {"logical_date": None}).status_code == 403


def test_an_inactive_user_is_nobody(admin):
    admin.is_active = False
    assert of_user(admin).permissions == frozenset()
