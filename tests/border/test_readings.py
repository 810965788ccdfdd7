"""DAG files that read Variables and Connections while they are imported, in real children."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from border.conftest import Stage
from scheduler_app.access import system
from scheduler_app.actions import connections, variables
from scheduler_app.models import DagFile
from scheduler_app.supervisor.parsing import ParsePool

pytestmark = [pytest.mark.processes, pytest.mark.django_db]

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANN = system("command", "ann")
FILE = """
from airflow.sdk import DAG, task
from airflow.models import Variable
from airflow.hooks.base import BaseHook
TAG = {tag}
with DAG("dag", schedule=None, tags=[TAG]):
    @task
    def show():
        print("the tag is", TAG)
    show()
"""


@pytest.fixture(autouse=True)
def keys(settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "fernet_keys": (Fernet.generate_key().decode(),)}


@pytest.fixture
def pool() -> Iterator[ParsePool]:
    made = ParsePool(1, 20.0, 0, environ=dict(os.environ), monotonic=time.monotonic)
    yield made
    made.close()


def parse(pool: ParsePool, folder: Path, tag: str) -> dict[str, Any]:
    (folder / "dag.py").write_text(FILE.format(tag=tag))
    (done,) = pool.run([(str(folder / "dag.py"), str(folder))])
    assert done.document is not None
    return done.document


def test_a_file_is_told_the_variable_of_today(pool: ParsePool, tmp_path: Path) -> None:
    variables.create(ANN, "team", "blue", NOW)
    first = parse(pool, tmp_path, "Variable.get('team')")
    variables.change(ANN, "team", NOW, value="red")
    second = parse(pool, tmp_path, "Variable.get('team')")
    assert [document["dags"][0]["tags"] for document in (first, second)] == [["blue"], ["red"]]
    assert second["asked"] == ["variable:team"]


def test_a_missing_variable_is_its_default_or_an_error_that_names_it(pool: ParsePool, tmp_path: Path) -> None:
    given = parse(pool, tmp_path, "Variable.get('team', default='none')")
    assert given["dags"][0]["tags"] == ["none"]
    refused = parse(pool, tmp_path, "Variable.get('team')")
    assert refused["dags"] == []
    assert "there is no Variable 'team': create it, or give a default." in refused["import_error"]
    assert refused["asked"] == ["variable:team"]


def test_a_file_is_told_a_connection_but_its_errors_hide_the_password(pool: ParsePool, tmp_path: Path) -> None:
    connections.create(ANN, "store", NOW, conn_type="http", host="shop", password="s3cr3t-word")
    told = parse(pool, tmp_path, "BaseHook.get_connection('store').host")
    assert told["dags"][0]["tags"] == ["shop"]
    failed = parse(pool, tmp_path, "int(BaseHook.get_connection('store').password)")
    assert "invalid literal for int() with base 10: '***'" in failed["import_error"]


def test_a_value_that_cannot_be_decrypted_is_the_files_error(pool: ParsePool, tmp_path: Path, settings: Any) -> None:
    variables.create(ANN, "team", "blue", NOW)
    settings.SCHEDULER = {**settings.SCHEDULER, "fernet_keys": (Fernet.generate_key().decode(),)}
    document = parse(pool, tmp_path, "Variable.get('team', default='none')")
    assert "RequestError" in document["import_error"]
    assert "key" in document["import_error"].splitlines()[-1]


def test_a_file_may_write_nothing_while_it_is_read(pool: ParsePool, tmp_path: Path) -> None:
    document = parse(pool, tmp_path, "Variable.set('team', 'blue')")
    assert "only Variables and Connections can be read: move the call into the task" in document["import_error"]


def test_a_name_that_the_database_refuses_is_the_files_error_and_nobody_elses(pool: ParsePool, tmp_path: Path) -> None:
    error = parse(pool, tmp_path, "Variable.get('a\\0b')")["import_error"]
    assert "NUL" in error
    assert parse(pool, tmp_path, "'fine'")["import_error"] is None


def test_a_zygote_is_told_of_such_a_name_and_its_attempts_run(stage: Stage) -> None:
    tag = "1\ntry:\n    Variable.get('a\\0b')\nexcept Exception as error:\n    TAG = type(error).__name__"
    (stage.folder / "dag.py").write_text(FILE.format(tag=tag))
    assert stage.perform("show").outcome["state"] == "success"


def test_a_change_of_what_a_file_read_asks_for_its_parse() -> None:
    for path, asked in (("a.py", ["variable:team"]), ("b.py", ["variable:other"]), ("c.py", ["connection:team"])):
        DagFile.objects.create(bundle_name="dags", relative_path=path, asked=asked)
    variables.create(ANN, "team", "blue", NOW)
    requested = dict(DagFile.objects.values_list("relative_path", "parse_requested_at"))
    assert requested == {"a.py": NOW, "b.py": None, "c.py": None}


def test_attempts_see_the_variable_of_today_and_hide_the_secret_ones(stage: Stage) -> None:
    (stage.folder / "dag.py").write_text(FILE.format(tag="Variable.get('api_token')"))
    variables.create(ANN, "api_token", "hush-hush", NOW)
    assert stage.perform("show").outcome["state"] == "success"
    variables.change(ANN, "api_token", NOW, value="other-word")
    (stage.folder / "dag.py").write_text(FILE.format(tag="Variable.get('api_token').upper()"))
    assert stage.perform("show").outcome["state"] == "success"
    log = (stage.folder / "show.log").read_text()
    assert '"the tag is ***"' in log
    assert '"the tag is OTHER-WORD"' in log


def test_a_zygote_whose_variable_changed_imports_its_file_again(stage: Stage) -> None:
    (stage.folder / "dag.py").write_text(FILE.format(tag="Variable.get('team')"))
    variables.create(ANN, "team", "blue", NOW)
    stage.perform("show")
    variables.change(ANN, "team", NOW, value="red")
    stage.perform("show")
    log = (stage.folder / "show.log").read_text()
    assert log.index("the tag is blue") < log.index("the tag is red")
