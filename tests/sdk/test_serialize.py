"""The document of a DAG, and what parsing a file gives."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduler_app.engine import dag as schema
from scheduler_app.sdk import DAG, Asset, AssetAlias, BashOperator, Param, PythonOperator, TaskGroup, task
from scheduler_app.sdk import EmptyOperator as Empty
from scheduler_app.sdk.serialize import serialize
from scheduler_app.sdk.timetables import AssetOrTimeSchedule, CronTriggerTimetable, Timetable
from scheduler_app.sdk.weight import PriorityWeightStrategy

from .memory_port import utc

HEADER = "from datetime import datetime\nfrom airflow import DAG\nfrom airflow.operators.empty import EmptyOperator\n"


def parse(path: Path, folder: Path) -> dict[str, Any]:
    """The parse result of a process of its own, as in production."""
    code = (
        "import json, sys; from scheduler_app.usercode.load import parse_file; "
        "print(json.dumps(parse_file(sys.argv[1], sys.argv[2])))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(folder)], capture_output=True, text=True, cwd=root, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_several_params_keep_the_order_of_the_file() -> None:
    with DAG("d", params={"rows": 1, "a": 2, "kind": 3}) as dag:
        Empty(task_id="a")
    assert serialize(dag)["param_order"] == ["rows", "a", "kind"]


def test_a_document_has_what_differs_from_the_defaults_and_reads_back() -> None:
    with DAG("d", tags=["b", "a"], default_args={"owner": "ann"}, params={"n": Param(3, type="integer")}) as dag:
        first = Empty(task_id="a", execution_timeout=dt.timedelta(seconds=90))
        first >> BashOperator(task_id="b", bash_command="x", retries=2, retry_exponential_backoff=True, owner="bob")
    document = serialize(dag)
    assert (document["tags"], document["owners"]) == (["a", "b"], ["ann", "bob"])
    assert document["params"] == {"n": {"schema": {"type": "integer"}, "value": 3}}
    assert "param_order" not in document
    assert document["tasks"][0] == {
        "task_id": "a",
        "operator_name": "EmptyOperator",
        "operator_module": "airflow.providers.standard.operators.empty",
        "owner": "ann",
        "ui_color": "#e8f7e4",
        "downstream": ["b"],
        "execution_timeout": 90.0,
        "is_empty": True,
    }
    assert (document["tasks"][1]["retries"], document["tasks"][1]["retry_exponential_backoff"]) == (2, 2.0)
    assert schema.to_doc(schema.from_doc(document)) == document
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize(
    "extra", [{"on_success_callback": print}, {"outlets": [Asset("conf://a")]}, {"pre_execute": print}]
)
def test_an_empty_task_with_something_to_run_needs_a_process(extra: dict[str, Any]) -> None:
    with DAG("d") as dag:
        Empty(task_id="t", **extra)
    assert "is_empty" not in serialize(dag)["tasks"][0]


def test_mapped_tasks_and_groups_tell_what_they_are_mapped_over() -> None:
    with DAG("d") as dag:

        @task
        def source() -> list[int]:
            return []

        @task
        def show(x: Any, y: Any = None) -> None: ...

        show.expand(x=source(), y=[1, 2])
    by_id = {item["task_id"]: item for item in serialize(dag)["tasks"]}
    assert by_id["source"]["feeds_mapping"] is True
    inputs = {"x": {"xcom": "source", "key": "return_value"}, "y": {"literal": 2}}
    assert by_id["show"]["mapped"] == {"style": "expand", "inputs": inputs}
    assert (by_id["show"]["operator_name"], by_id["show"]["operator_display_name"]) == (
        "_PythonDecoratedOperator",
        "@task",
    )


def test_groups_form_a_tree_in_definition_order_with_their_edges() -> None:
    with DAG("d") as dag:
        start = Empty(task_id="start")
        with TaskGroup("outer", tooltip="tip") as outer:
            Empty(task_id="a")
            with TaskGroup("inner"):
                Empty(task_id="b")
        start >> outer
    groups = {item["group_id"]: item for item in serialize(dag)["groups"]}
    assert groups[None]["children"] == [{"task": "start"}, {"group": "outer"}]
    assert groups["outer"]["children"] == [{"task": "outer.a"}, {"group": "outer.inner"}]
    assert (groups["outer"]["tooltip"], groups["outer"]["upstream_task_ids"]) == ("tip", ["start"])
    assert groups["outer.inner"]["parent"] == "outer"


def test_asset_schedules_become_conditions() -> None:
    a, b, alias = Asset("conf://a"), Asset("conf://b"), AssetAlias("x")

    def leaf(name: str) -> dict[str, Any]:
        return {"asset": {"name": name, "uri": name, "group": "asset", "extra": {}}}

    both = {"all": [leaf("conf://a"), leaf("conf://b")]}
    assert serialize(DAG("d", schedule=[a, b]))["timetable"] == {"kind": "asset", "condition": both}
    assert serialize(DAG("d", schedule=a & b))["timetable"]["condition"] == both
    assert serialize(DAG("d", schedule=a & (b | alias)))["timetable"]["condition"] == {
        "all": [leaf("conf://a"), {"any": [leaf("conf://b"), {"alias": "x"}]}]
    }
    mixed = AssetOrTimeSchedule(timetable=CronTriggerTimetable("0 1 * * 3"), assets=a)
    document = serialize(DAG("d", schedule=mixed))["timetable"]
    assert (document["kind"], document["timetable"]["kind"]) == ("asset_or_time", "cron_trigger")


def test_an_authors_own_timetable_and_weight_rule_are_described() -> None:
    class Mine(Timetable):
        description = "mine"

    class Fixed(PriorityWeightStrategy):
        def get_weight(self, ti: Any) -> int:
            return 40 + ti.priority_weight

    with DAG("d", schedule=Mine()) as dag:
        Empty(task_id="t", priority_weight=2, weight_rule=Fixed())
    document = serialize(dag)
    assert (document["timetable"]["kind"], document["timetable"]["summary"]) == ("custom", "Mine")
    assert (document["tasks"][0]["weight_rule"], document["tasks"][0]["weight"]) == ("custom", 42)


def test_the_document_does_not_depend_on_where_the_file_lies(tmp_path: Path) -> None:
    text = (
        HEADER + 'with DAG("d", start_date=datetime(2024, 1, 1), schedule="@daily"):\n    EmptyOperator(task_id="x")\n'
    )
    documents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.py").write_text(text)
        documents.append(parse(tmp_path / name / "f.py", tmp_path / name)["dags"])
    assert documents[0] == documents[1]


def test_a_file_gives_bound_registered_and_decorated_dags_but_no_hidden_ones(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        HEADER
        + "from airflow.decorators import dag\n"
        + "bound = DAG('bound', schedule=None)\n"
        + "def build(n):\n    with DAG(f'made_{n}', schedule=None) as d:\n        EmptyOperator(task_id='x')\n"
        + "build(1)\n"
        + "@dag(schedule=None)\ndef decorated():\n    EmptyOperator(task_id='x')\ndecorated()\n"
        + "def hidden():\n    return DAG('hidden', schedule=None)\nhidden()\n"
    )
    result = parse(tmp_path / "f.py", tmp_path)
    assert [document["dag_id"] for document in result["dags"]] == ["bound", "made_1", "decorated"]
    assert (result["import_error"], result["dag_errors"], result["file"]) == (None, {}, "f.py")


def test_modules_beside_the_file_are_importable_and_reported(tmp_path: Path) -> None:
    (tmp_path / "helpers_of_test.py").write_text("WORD = 'w'\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "f.py").write_text(
        HEADER + "from helpers_of_test import WORD\nd = DAG('d_' + WORD, schedule=None)\n"
    )
    result = parse(tmp_path / "sub" / "f.py", tmp_path)
    assert (result["dags"][0]["dag_id"], result["modules"]) == ("d_w", ["helpers_of_test.py"])


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("import a_module_that_does_not_exist", "ModuleNotFoundError: No module named 'a_module_that_does_not_exist'"),
        ("this is no python", "SyntaxError"),
        ("with DAG('d'):\n    EmptyOperator(task_id='x', no_such=1)", "'no_such'"),
        ("with DAG('d', schedule='61 25 * * *'):\n    pass", "61 25 * * *"),
        (
            "with DAG('d'):\n    [EmptyOperator(task_id='same') for _ in 'ab']",
            "airflow.exceptions.DuplicateTaskIdFound",
        ),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_a_file_that_cannot_be_imported_names_the_cause_and_its_line(tmp_path: Path, body: str, cause: str) -> None:
    (tmp_path / "f.py").write_text(HEADER + body + "\n")
    result = parse(tmp_path / "f.py", tmp_path)
    assert cause in result["import_error"]
    assert "f.py" in result["import_error"]
    assert "scheduler_app/" not in result["import_error"]
    assert result["dags"] == []


def test_one_broken_dag_leaves_the_others_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        HEADER
        + "with DAG('good', schedule=None):\n    EmptyOperator(task_id='x')\n"
        + "with DAG('bad', schedule=None):\n    p, q = EmptyOperator(task_id='p'), EmptyOperator(task_id='q')\n"
        + "    p >> q >> p\n"
    )
    result = parse(tmp_path / "f.py", tmp_path)
    assert [document["dag_id"] for document in result["dags"]] == ["good"]
    assert "Cycle in DAG 'bad': p >> q >> p" in result["dag_errors"]["bad"]


def test_a_scheduled_dag_needs_defaults_for_its_params(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        HEADER
        + "from airflow.models.param import Param\n"
        + "d = DAG('d', schedule='@daily', params={'n': Param(type='integer')})\n"
    )
    assert "'n'" in parse(tmp_path / "f.py", tmp_path)["dag_errors"]["d"]


def test_warnings_of_a_file_are_reported(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("import warnings\nwarnings.warn('old way', DeprecationWarning)\n")
    warning = parse(tmp_path / "f.py", tmp_path)["warnings"][0]
    assert (warning["type"], warning["message"].startswith("old way")) == ("DeprecationWarning", True)


def test_the_process_of_a_dag_file_has_nothing_of_ours_beyond_the_sdk() -> None:
    code = (
        "import scheduler_app.usercode.load, scheduler_app.usercode.execute, sys; "
        "print([name for name in ('django', 'celery', 'psycopg2') if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == "[]"


def test_a_lambda_and_an_object_in_default_args_have_stable_texts() -> None:
    with DAG("d", default_args={"on_failure_callback": lambda context: None, "thing": object()}) as dag:
        PythonOperator(task_id="t", python_callable=print, start_date=utc(2024, 1, 1))
    document = serialize(dag)
    assert " at 0x" not in json.dumps(document)
    assert document["tasks"][0]["start_date"] == "2024-01-01T00:00:00+00:00"


def test_a_subclass_of_the_empty_operator_that_does_something_is_executed() -> None:
    class Louder(Empty):
        def execute(self, context: Any) -> None: ...

    class Quiet(Empty):
        ui_color = "#123456"

    with DAG("d") as dag:
        Louder(task_id="louder")
        Quiet(task_id="quiet", on_failure_callback=print)
    assert [task.get("is_empty", False) for task in serialize(dag)["tasks"]] == [False, True]
