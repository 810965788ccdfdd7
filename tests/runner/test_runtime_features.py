"""What a task's author may rely on while it runs, each by a DAG file and a real process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.conftest import Place, ti_of, xcom_of
from scheduler_app.conf import Conf
from scheduler_app.engine.dag import Dag
from scheduler_app.executors.inline import InlineExecutor
from scheduler_app.models import Connection, DagRun, RenderedFields, TaskInstance, Variable, db
from scheduler_app.secrets import encrypt
from tests import rows
from tests.shapes import shape

pytestmark = [pytest.mark.django_db, pytest.mark.processes]

Play = Callable[..., DagRun]

BACKENDS = """
import json, os, pathlib
from airflow.sdk.bases.xcom import BaseXCom
from airflow.secrets import BaseSecretsBackend

class Files(BaseXCom):
    @staticmethod
    def serialize_value(value, *, key=None, task_id=None, dag_id=None, run_id=None, map_index=None, **kwargs):
        if isinstance(value, list):
            path = pathlib.Path(__file__).with_name(f"{task_id}.{key}.json")
            path.write_text(json.dumps(value))
            value = f"file:{path.name}"
        return BaseXCom.serialize_value(value)

    @staticmethod
    def deserialize_value(result):
        value = BaseXCom.deserialize_value(result)
        if isinstance(value, str) and value.startswith("file:"):
            value = json.loads(pathlib.Path(__file__).with_name(value[5:]).read_text())
        return value

class Vault(BaseSecretsBackend):
    def __init__(self, secret):
        self.secret = secret
    def get_variable(self, key, team_name=None):
        if key == "broken":
            raise RuntimeError("the vault is sealed")
        return {"both": "from the vault", "api_token": self.secret}.get(key)
    def get_conn_value(self, conn_id, team_name=None):
        return f"postgres://ann:{self.secret}@db:5432/main" if conn_id == "warehouse" else None
"""


@pytest.fixture(autouse=True)
def _keys(settings: Any, knobs: Conf) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "fernet_keys": knobs.fernet_keys}


@pytest.fixture
def play(place: Place, knobs: Conf) -> Iterator[Play]:
    """Runs a DAG file's tasks one after the other, in executors that start with the environment of that moment."""
    made: list[InlineExecutor] = []

    def run(body: str, tasks: str = "work", *, dag: Dag | None = None, conf: Any = None, **settings: Any) -> DagRun:
        executor = InlineExecutor(replace(knobs, **settings), slots=4)
        made.append(executor)
        executor.start(0)
        (dag_run,) = rows.trigger(place.stored(dag or shape(tasks), place.file(body)), conf=conf)
        for task_id in tasks.split(" >> "):
            executor.accept(place.queued(dag_run, task_id))
            executor.drain()
        return dag_run

    yield run
    for executor in made:
        executor.stop(0)


def test_an_xcom_backend_of_the_user_stores_elsewhere_and_reads_back(
    play: Play, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.dags / "my_backends.py").write_text(BACKENDS)
    monkeypatch.setenv("AIRFLOW__CORE__XCOM_BACKEND", "my_backends.Files")
    run = play(
        """
        @task
        def first(ti=None):
            ti.xcom_push("small", 7)
            ti.xcom_push("own", [1])
            assert ti.xcom_pull(task_ids="first", key="own") == [1]
            return [1, 2, 3]
        @task
        def second(values, ti=None):
            return {"values": values, "pulled": ti.xcom_pull(task_ids="first", key="small")}
        second(first())
        """,
        "first >> second",
    )
    assert rows.states(run) == {"first": "success", "second": "success"}
    assert xcom_of(run, "first") == "file:first.return_value.json"
    assert xcom_of(run, "second") == {"values": [1, 2, 3], "pulled": 7}


def test_an_xcom_backend_that_cannot_be_imported_fails_the_task_and_names_the_setting(
    play: Play, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__XCOM_BACKEND", "nowhere.Files")
    run = play("@task\ndef work():\n    return [1]\nwork()\n")
    assert "correct AIRFLOW__CORE__XCOM_BACKEND" in (ti_of(run, "work").reason or "")


def test_a_value_that_is_too_large_fails_the_task_and_names_the_limit(play: Play) -> None:
    run = play("@task\ndef work():\n    return 'x' * 3_000_000\nwork()\n", max_message_mb=1)
    ti = ti_of(run, "work")
    assert ti.state == "failed"
    assert "XCom 'return_value' is 3.0 MB, the limit is 1.0 MB" in ti.reason
    assert "max_message_mb" in ti.reason


def test_variables_and_connections_of_the_environment_come_before_the_database_and_are_masked(
    play: Play, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_COLOUR", "green")
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgres://ann:s3cr3t-of-env@db:5432/main")
    Variable.objects.create(key="colour", value_encrypted=encrypt("red"))
    run = play(
        """
        from airflow.sdk import Variable, Connection
        @task
        def work():
            print("the password is", Connection.get("warehouse").password)
            return Variable.get("colour")
        work()
        """
    )
    assert xcom_of(run, "work") == "green"
    assert "the password is ***" in place.log(ti_of(run, "work"))
    assert "s3cr3t-of-env" not in place.log(ti_of(run, "work"))


def test_a_secrets_backend_is_asked_first_and_what_fails_in_it_is_passed_over(
    play: Play, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.dags / "my_backends.py").write_text(BACKENDS)
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND", "my_backends.Vault")
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND_KWARGS", json.dumps({"secret": "hunter2-of-vault"}))
    monkeypatch.setenv("AIRFLOW_VAR_BOTH", "from the environment")
    monkeypatch.setenv("AIRFLOW_VAR_BROKEN", "from the environment")
    run = play(
        """
        from airflow.sdk import Variable, Connection
        @task
        def work():
            print("token", Variable.get("api_token"), "password", Connection.get("warehouse").password)
            return [Variable.get("both"), Variable.get("broken"), Connection.get("warehouse").host]
        work()
        """
    )
    assert xcom_of(run, "work") == ["from the vault", "from the environment", "db"]
    log = place.log(ti_of(run, "work"))
    assert "token *** password ***" in log
    assert "the vault is sealed" in log
    assert "hunter2-of-vault" not in log


def test_secrets_are_masked_in_the_log_the_rendered_fields_and_the_reason(play: Play, place: Place) -> None:
    Connection.objects.create(
        connection_id="crm", conn_type="http", host="h", password_encrypted=encrypt("pa55-of-crm"), extra_encrypted=""
    )
    run = play(
        """
        BashOperator(task_id="work", bash_command="echo key {{ conn.crm.password }}; exit 3")
        """
    )
    ti = ti_of(run, "work")
    assert "key ***" in place.log(ti)
    fields = RenderedFields.objects.get(task_instance=ti).fields
    assert fields["bash_command"] == "echo key ***; exit 3"
    everything = place.log(ti) + json.dumps(fields) + ti.reason
    assert "pa55-of-crm" not in everything


def test_params_come_from_the_dag_the_task_and_the_run(play: Play, place: Place) -> None:
    run = play(
        """
        @task(params={"b": 2, "c": 2})
        def work(params):
            return dict(params)
        work()
        """,
        conf={"c": 3},
    )
    assert xcom_of(run, "work") == {"b": 2, "c": 3}


def test_hooks_and_callbacks_run_around_the_task(play: Play, place: Place) -> None:
    run = play(
        """
        def note(word):
            return lambda *args: print("note", word)
        PythonOperator(
            task_id="work", python_callable=lambda: print("note execute"), pre_execute=note("pre"),
            post_execute=note("post"), on_execute_callback=note("on_execute"),
        )
        """
    )
    words = [line.rpartition(" ")[2] for line in place.log(ti_of(run, "work")).splitlines() if " note " in line]
    assert words == ["on_execute", "pre", "execute", "post"]


def test_an_async_task_and_an_async_function(play: Play) -> None:
    run = play(
        """
        import asyncio
        @task
        async def work():
            await asyncio.sleep(0)
            return "awaited"
        work()
        """
    )
    assert xcom_of(run, "work") == "awaited"


def test_a_retry_policy_asks_for_its_own_delay_or_for_none(play: Play) -> None:
    body = """
        from airflow.sdk import ExceptionRetryPolicy, RetryRule
        rules = [RetryRule(exception=ValueError, action="retry", retry_delay=timedelta(minutes=7)),
                 RetryRule(exception=KeyError, action="fail")]
        @task(retries=3, retry_delay=timedelta(hours=1), retry_policy=ExceptionRetryPolicy(rules=rules))
        def work():
            raise {error}
        work()
        """
    dag = shape("work", tasks={"work": {"retries": 3, "retry_delay": 3600.0}})
    ti = ti_of(play(body.format(error="ValueError"), dag=dag), "work")
    assert ti.state == "up_for_retry"
    assert 400 < (ti.next_at - db.clock()).total_seconds() < 430
    TaskInstance.objects.all().delete()
    DagRun.objects.all().delete()
    assert ti_of(play(body.format(error="KeyError"), dag=dag), "work").state == "failed"


PROJECT = """
SECRET_KEY = "theirs"
INSTALLED_APPS = ["shop"]
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": {path!r}}}}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
"""
MODELS = """
from django.db import models

class Order(models.Model):
    text = models.CharField(max_length=20)
"""


def test_a_task_uses_the_models_of_the_users_own_django_project(
    play: Play, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "task_django_settings_module": "shop_settings"}
    project = tmp_path / "project"
    (project / "shop").mkdir(parents=True)
    (project / "shop" / "__init__.py").touch()
    (project / "shop" / "models.py").write_text(MODELS)
    (project / "shop_settings.py").write_text(PROJECT.format(path=str(tmp_path / "shop.sqlite3")))
    monkeypatch.setenv("PYTHONPATH", str(project))
    run = play(
        """
        from django.db import connection
        from shop.models import Order
        @task
        def first():
            with connection.schema_editor() as editor:
                editor.create_model(Order)
            return Order.objects.create(text="one").pk
        @task
        def second():
            from django.conf import settings
            return [settings.SECRET_KEY, Order.objects.get().text]
        first() >> second()
        """,
        "first >> second",
    )
    assert rows.states(run) == {"first": "success", "second": "success"}
    assert xcom_of(run, "second") == ["theirs", "one"]
