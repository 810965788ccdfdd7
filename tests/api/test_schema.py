"""Every answer fits the response schema that Airflow 3.3.2 publishes; its wheel is unpacked when the test runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from typing import Any

import jsonschema
import pytest
import yaml

from scheduler_app.models import (
    Asset,
    AssetAlias,
    AssetEvent,
    AssetQueuedEvent,
    AssetUse,
    Connection,
    DagWarning,
    Job,
    ParseError,
    RenderedFields,
    TaskInstance,
    Trigger,
    Variable,
    transitions,
)
from scheduler_app.secrets import encrypt
from tests.rows import T0, at

WHEEL = "apache-airflow-core==3.3.2"
SPEC = "airflow/api_fastapi/core_api/openapi/v2-rest-api-generated.yaml"
TI = "dags/etl/dagRuns/run0/taskInstances"

#: (method, path, body); the last ones change what the others read
REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "monitor/health", None),
    ("GET", "version", None),
    ("GET", "config", None),
    ("GET", "config/section/scheduler/option/port", None),
    ("GET", "providers", None),
    ("GET", "plugins", None),
    ("GET", "plugins/importErrors", None),
    ("GET", "jobs", None),
    ("GET", "dags", None),
    ("GET", "dags/etl", None),
    ("GET", "dags/etl/details", None),
    ("GET", "dags/etl/tasks", None),
    ("GET", "dags/etl/tasks/load", None),
    ("GET", "dags/etl/dagVersions", None),
    ("GET", "dags/etl/dagVersions/1", None),
    ("GET", "dagTags", None),
    ("GET", "dagStats", None),
    ("GET", "dagWarnings", None),
    ("GET", "dags/~/dagRuns", None),
    ("GET", "dags/etl/dagRuns?cursor=", None),
    ("POST", "dags/~/dagRuns/list", {}),
    ("GET", "dags/etl/dagRuns/run0", None),
    ("GET", "dags/etl/dagRuns/run0/upstreamAssetEvents", None),
    ("POST", "dags/etl/dagRuns/run0/clear", {}),
    ("GET", TI, None),
    ("POST", "dags/~/dagRuns/~/taskInstances/list", {}),
    ("GET", f"{TI}/load", None),
    ("GET", f"{TI}/load/-1", None),
    ("GET", f"{TI}/load/listMapped", None),
    ("GET", f"{TI}/load/tries", None),
    ("GET", f"{TI}/extract/tries/1", None),
    ("GET", f"{TI}/load/-1/tries", None),
    ("GET", f"{TI}/load/dependencies", None),
    ("GET", f"{TI}/load/-1/dependencies", None),
    ("GET", f"{TI}/load/links", None),
    ("GET", f"{TI}/extract/logs/1", None),
    ("POST", f"{TI}/load/xcomEntries", {"key": "k", "value": {"a": 1}}),
    ("GET", f"{TI}/~/xcomEntries", None),
    ("GET", f"{TI}/load/xcomEntries/k", None),
    ("GET", f"{TI}/load/xcomEntries/k?stringify=true", None),
    ("PATCH", f"{TI}/load/xcomEntries/k", {"value": 2}),
    ("GET", "assets", None),
    ("GET", "assets/1", None),
    ("GET", "assets/aliases", None),
    ("GET", "assets/aliases/1", None),
    ("GET", "assets/events", None),
    ("POST", "assets/events", {"asset_id": 1}),
    ("GET", "assets/1/queuedEvents", None),
    ("GET", "dags/etl/assets/queuedEvents", None),
    ("GET", "dags/etl/assets/1/queuedEvents", None),
    ("GET", "pools", None),
    ("GET", "pools/default_pool", None),
    ("POST", "pools", {"name": "p", "slots": -1}),
    ("PATCH", "pools/p", {"slots": 3}),
    ("GET", "variables", None),
    ("GET", "variables/v", None),
    ("POST", "variables", {"key": "w", "value": 1}),
    ("PATCH", "variables/v", {"key": "v", "value": "2"}),
    ("GET", "connections", None),
    ("GET", "connections/pg", None),
    ("POST", "connections", {"connection_id": "new", "conn_type": "http"}),
    ("PATCH", "connections/pg", {"connection_id": "pg", "conn_type": "http"}),
    ("GET", "importErrors", None),
    ("GET", "importErrors/1", None),
    ("GET", "eventLogs", None),
    ("PATCH", f"{TI}/load/dry_run", {"new_state": "failed"}),
    ("PATCH", f"{TI}/load", {"new_state": "failed"}),
    ("PATCH", f"{TI}/load/-1", {"note": "n"}),
    ("POST", "dags/etl/clearTaskInstances", {"dag_run_id": "run0"}),
    ("PATCH", "dags/etl/dagRuns/run0", {"note": "n", "state": "failed"}),
    ("POST", "dags/etl/dagRuns/run0/clear", {"dry_run": False}),
    ("POST", "dags/etl/dagRuns", {"logical_date": None}),
    ("PATCH", "dags/etl", {"is_paused": True}),
    ("PATCH", "dags", {"is_paused": False}),
    ("PATCH", "pools", {"actions": [{"action": "create", "entities": [{"name": "z", "slots": 1}]}]}),
    ("PATCH", "dags/etl/dagRuns", {"actions": [{"action": "delete", "entities": ["nope"]}]}),
    ("PATCH", TI, {"actions": []}),
    ("POST", "dags/etl/clearDagRuns", {"dag_runs": [{"dag_run_id": "run0"}], "dry_run": False}),
    ("POST", "assets/1/materialize", {"conf": {}}),
    ("DELETE", f"{TI}/check", None),
    # errors
    ("GET", "dags/nope", None),
    ("GET", "dags?limit=x", None),
    ("POST", "dags/etl/dagRuns", {}),
    ("POST", "pools", {"name": "p", "slots": 1}),
    ("DELETE", "pools/default_pool", None),
]


@pytest.fixture(scope="session")
def spec(tmp_path_factory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{WHEEL} cannot be downloaded: {done.stderr[-300:]}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        spec = yaml.safe_load(wheel.read(SPEC))
    # A task instance also fits the other alternative (its id and name alone), so "one of" can never hold here.
    items = spec["components"]["schemas"]["ClearTaskInstanceCollectionResponse"]["properties"]["task_instances"][
        "items"
    ]
    items["anyOf"] = items.pop("oneOf")
    return spec


@pytest.fixture
def world(etl, run):
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
    Connection.objects.create(connection_id="pg", conn_type="postgres", extra_encrypted=encrypt("{}"))
    ParseError.objects.create(pk=1, timestamp=T0, filename="bad.py", stack_trace="SyntaxError")
    DagWarning.objects.create(dag=etl, warning_type="non-existent pool", message="m", timestamp=T0)
    Job.objects.create(job_type="SchedulerJob", start_date=T0, latest_heartbeat=T0)


def operation(spec: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    """The operation that a path belongs to: the template with the most literal parts."""
    asked = f"/api/v2/{path.split('?')[0]}"
    fitting = [
        template
        for template, methods in spec["paths"].items()
        if method.lower() in methods and re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", template), asked)
    ]
    best = min(fitting, key=lambda template: template.count("{"))
    return spec["paths"][best][method.lower()]


def test_every_answer_fits_the_published_schema(spec, world, http):
    wrong = []
    for method, path, body in REQUESTS:
        answer = http(method, path, body)
        responses = operation(spec, method, path)["responses"]
        described = responses.get(str(answer.status_code))
        if described is None:
            wrong.append(f"{method} {path}: {answer.status_code} is not described: {answer.content[:200]!r}")
            continue
        if "content" not in described:
            continue
        schema = {**described["content"]["application/json"]["schema"], "components": spec["components"]}
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
        wrong += [
            f"{method} {path} {answer.status_code}: {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
            for error in validator.iter_errors(answer.json())
        ]
    assert wrong == []


def test_the_answers_name_no_key_that_the_schema_does_not_know(spec, world, http):
    """A key of ours in Airflow's objects would be one that its clients drop in silence."""
    unknown = []
    for method, path, body in REQUESTS:
        answer = http(method, path, body)
        content = operation(spec, method, path)["responses"].get(str(answer.status_code), {}).get("content")
        if answer.status_code == 200 and content:
            unknown += [
                f"{path}: {key}" for key in strangers(spec, content["application/json"]["schema"], answer.json())
            ]
    assert unknown == []


def strangers(spec: dict[str, Any], schema: dict[str, Any], value: Any) -> list[str]:
    while "$ref" in schema:
        schema = spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    if isinstance(value, list) and "items" in schema:
        return [key for item in value for key in strangers(spec, schema["items"], item)]
    if not isinstance(value, dict) or "properties" not in schema or schema.get("additionalProperties"):
        return []
    found = [key for key in value if key not in schema["properties"]]
    for key, item in value.items():
        found += strangers(spec, schema["properties"].get(key, {}), item)
    return found
