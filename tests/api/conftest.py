"""The official client against our views in the same process, and people of each role."""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import urlsplit

import airflow_client.client as airflow
import pytest
import urllib3
from cryptography.fernet import Fernet
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.test import Client

from api import auth
from scheduler_app.engine.dag import Group as TaskGroup
from scheduler_app.models import (
    Asset,
    AssetAlias,
    AssetEvent,
    AssetQueuedEvent,
    AssetState,
    AssetUse,
    Audit,
    Backfill,
    Callback,
    Connection,
    DagFile,
    DagRun,
    DagVersion,
    DagWarning,
    Favourite,
    Job,
    Limit,
    ParseError,
    Pool,
    RenderedFields,
    SourceBlob,
    TaskInstance,
    TaskState,
    Trigger,
    Variable,
    XCom,
    transitions,
)
from scheduler_app.models.creation import expand
from scheduler_app.models.state_store import QUESTION_KEY
from scheduler_app.secrets import encrypt
from tests import rows
from tests.api import published
from tests.rows import T0, at
from tests.shapes import shape

FERNET = Fernet.generate_key().decode()


@pytest.fixture(autouse=True)
def _settings(settings, tmp_path):
    settings.ROOT_URLCONF = "tests.api.urls"
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.SCHEDULER = {"home": tmp_path, "fernet_keys": (FERNET,)}
    cache.clear()


class InProcess:
    """What urllib3's pool manager does, without a socket."""

    def __init__(self) -> None:
        self.client = Client(raise_request_exception=False)

    def request(self, method: str, url: str, body: Any = None, headers: Any = None, **_: Any) -> Any:
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        given = dict(headers or {})
        kind = given.pop("Content-Type", "application/json")
        answer = self.client.generic(method, path, body or b"", content_type=kind, headers=given)
        content = answer.getvalue() if not answer.streaming else b"".join(answer.streaming_content)
        return urllib3.HTTPResponse(body=io.BytesIO(content), status=answer.status_code, headers=dict(answer.items()))


def official(token: str) -> airflow.ApiClient:
    configuration = airflow.Configuration(host="http://testserver")
    configuration.access_token = token
    client = airflow.ApiClient(configuration)
    client.rest_client.pool_manager = InProcess()
    return client


class Http:
    """Plain requests as one person."""

    def __init__(self, user: User | None) -> None:
        self.user = user
        headers = {"Authorization": f"Bearer {auth.issue(user, 3600)}"} if user else {}
        self.client = Client(raise_request_exception=False, headers=headers)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        more = {"data": body, "content_type": "application/json"} if body is not None else {}
        return getattr(self.client, method.lower())(f"/api/v2/{path}", headers=headers, **more)

    def get(self, path: str, **headers: str) -> Any:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any) -> Any:
        return self("POST", path, body)

    def patch(self, path: str, body: Any) -> Any:
        return self("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self("DELETE", path)


@pytest.fixture
def admin(db) -> User:
    return User.objects.create_superuser("ada", "", "secret-of-ada")


@pytest.fixture
def http(admin) -> Http:
    return Http(admin)


@pytest.fixture
def client(admin) -> airflow.ApiClient:
    """The official client, as an administrator."""
    return official(auth.issue(admin, 3600))


@pytest.fixture
def as_role(db):
    """``as_role("Viewer")`` → requests of a person of that role; None is nobody."""

    def person(role: str | None) -> Http:
        if role is None:
            return Http(None)
        user = User.objects.create_user(f"a-{role.lower()}", password="x")
        user.groups.add(Group.objects.get(name=role))
        return Http(user)

    return person


@pytest.fixture
def etl(db):
    """extract >> [clean, check] >> load, with one queued run ``run0``."""
    dag = shape(
        "extract >> [clean, check] >> load",
        "etl",
        tasks={"clean": {"retries": 2, "operator_name": "BashOperator"}, "load": {"task_display_name": "Load it"}},
        params={"n": {"value": 1, "schema": {"type": "integer", "maximum": 9}}},
        dagrun_timeout=7200.0,
        owners=("ann", "bob"),
    )
    row = rows.store(
        dag, dag_display_name="E, T and L", owners="ann, bob", relative_fileloc="etl.py", fileloc="/d/etl.py"
    )
    row.tags.create(name="nightly")
    return row


@pytest.fixture
def run(etl):
    return rows.trigger(etl, 1)[0]


@pytest.fixture(scope="session")
def spec(tmp_path_factory) -> dict[str, Any]:
    """The document that Airflow publishes of its API."""
    return published.document(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def full(etl, run):
    """One of everything that an answer can show."""
    extract = TaskInstance.objects.get(dag_run=run, task_id="extract")
    for verb in ("schedule", "queue", "start", "succeed"):
        transitions.tasks(verb, [extract.pk], at(3))
    trigger = Trigger.objects.create(classpath="a.B", kwargs={"x": 1}, created_date=T0)
    TaskInstance.objects.filter(task_id="load").update(trigger_id=trigger.pk)
    RenderedFields.objects.create(task_instance=extract, fields={"cmd": "echo"})
    asset = Asset.objects.create(pk=1, name="lake", uri="s3://lake", created_at=T0, updated_at=T0)
    AssetAlias.objects.create(pk=1, name="alias").assets.add(asset)
    for kind, task_id in (("schedule", ""), ("outlet", "load"), ("inlet", "clean")):
        AssetUse.objects.create(dag=etl, asset=asset, kind=kind, task_id=task_id, created_at=T0)
    event = AssetEvent.objects.create(asset=asset, timestamp=T0, source_dag_id="etl", source_map_index=-1)
    event.created_dagruns.add(run)
    AssetQueuedEvent.objects.create(dag=etl, asset=asset, event=event, created_at=T0)
    Variable.objects.create(key="v", value_encrypted=encrypt("1"))
    Limit.objects.create(name="warehouse", amount=2)
    Connection.objects.create(connection_id="pg", conn_type="postgres", extra_encrypted=encrypt("{}"))
    ParseError.objects.create(pk=1, timestamp=T0, filename="bad.py", stack_trace="SyntaxError")
    DagWarning.objects.create(dag=etl, warning_type="non-existent pool", message="m", timestamp=T0)
    Job.objects.create(job_type="SchedulerJob", start_date=T0, latest_heartbeat=T0)


@pytest.fixture
def world(full, as_role):
    """``world("Viewer")`` → requests of a person of that role, in a world that has every id of ``every_route``."""
    Callback.objects.create(
        pk=10**9, kind="dag_failure", dedupe_key="k", dag_id="etl", next_at=T0, created_at=T0, state="failed"
    )
    Audit.objects.create(pk=10**9, when=T0, event="trigger", dag_id="etl")
    SourceBlob.objects.create(sha256="a" * 64, content=b"print()")
    DagVersion.objects.update(source_sha256="a" * 64)
    DagFile.objects.create(bundle_name="dags", relative_path="etl.py")
    Pool.objects.create(pool="small", slots=1)
    extract = TaskInstance.objects.get(dag_id="etl", task_id="extract")
    own = {"dag_run_id": extract.dag_run_id, "dag_id": "etl", "task_id": "extract"}
    XCom.objects.create(**own, key="k", value=[1], timestamp=T0)
    TaskState.objects.create(**own, key="k", value={"n": 0}, updated_at=T0)
    writer = {"dag_id": "etl", "run_id": "run0", "task_id": "extract", "map_index": -1}
    AssetState.objects.create(asset_id=1, key="k", value=2, updated_at=T0, updated_by=writer)
    _flow()

    def person(role: str | None) -> Http:
        http = as_role(role)
        if http.user is not None:
            Favourite.objects.create(dag_id="etl", user_id=str(http.user.pk))
        return http

    return person


def _flow() -> None:
    """A DAG with a mapped task, a group, a question to people and a partition; and one with a schedule."""
    daily = {"kind": "cron_trigger", "expression": "0 0 * * *"}
    groups = (
        TaskGroup(None, children=({"task": "plain"}, {"task": "twice"}, {"task": "ask"}, {"group": "g"})),
        TaskGroup("g", children=({"task": "inner"},)),
    )
    mapped = {"twice": {"mapped": {"style": "expand", "inputs": {"x": {"xcom": "plain"}}}}}
    flow = rows.store(shape("plain >> twice; ask; inner", "flow", mapped, groups=groups, timetable=daily))
    run = rows.trigger(flow, 1, partition_key="p")[0]
    expand([(run.pk, "twice", 2)])
    waiting = TaskInstance.objects.get(dag_run=run, task_id="ask")
    for verb in ("schedule", "queue", "start", "defer"):
        transitions.tasks(verb, [waiting.pk], at(1))
    question = {"subject": "Ship it?", "options": ["Yes", "No"], "params": {}}
    own = {"dag_run": run, "dag_id": "flow", "task_id": "ask"}
    TaskState.objects.create(**own, key=QUESTION_KEY, value=question, updated_at=at(2))
    ended = rows.trigger(flow, 1, prefix="ended")[0]
    DagRun.objects.filter(pk=ended.pk).update(run_id="ended")
    XCom.objects.create(dag_run=ended, dag_id="flow", task_id="plain", key="return_value", value=7, timestamp=T0)
    transitions.runs("start", [ended.pk], at(1))
    transitions.runs("succeed", [ended.pk], at(9))
    Backfill.objects.create(pk=10**9, dag=flow, from_date=T0, to_date=T0, created_at=T0, updated_at=T0)
    rows.store(shape("a", "daily", timetable=daily))
