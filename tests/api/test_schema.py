"""Every answer fits the response schema that Airflow 3.3.2 publishes; its wheel is unpacked when the test runs."""

from __future__ import annotations

import re
from typing import Any

from tests.api import published
from tests.api.every_route import TABLE

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


def test_every_answer_fits_the_published_schema(spec, full, http):
    wrong = []
    for method, path, body in REQUESTS:
        wrong += published.mistakes(spec, method, path, http(method, path, body))
    assert wrong == []


def test_the_answers_name_no_key_that_the_schema_does_not_know(spec, full, http):
    """A key of ours in Airflow's objects would be one that its clients drop in silence."""
    unknown = []
    for method, path, body in REQUESTS:
        answer = http(method, path, body)
        content = published.operation(spec, method, path)["responses"].get(str(answer.status_code), {}).get("content")
        if answer.status_code == 200 and content:
            schema = content["application/json"]["schema"]
            unknown += [f"{path}: {key}" for key in published.strangers(spec, schema, answer.json())]
    assert unknown == []


#: operations of Airflow's document that are not served, and why
LEFT_OUT = {
    (
        "POST",
        "/api/v2/connections/defaults",
    ): "makes some fifty demonstration connections of providers that nobody asked for",
}


def test_every_operation_of_the_published_document_is_served_but_for_those_left_out_on_purpose(spec):
    def nameless(path: str) -> str:
        return re.sub(r"{[^}]+}", "{}", path)

    served = {(method, nameless(f"/api/v2/{route}")) for method, route in TABLE}
    published_ones = {
        (method.upper(), path)
        for path, methods in spec["paths"].items()
        for method in methods
        if method in ("get", "post", "put", "patch", "delete")
    }
    missing = {(method, path) for method, path in published_ones if (method, nameless(path)) not in served}
    assert missing == set(LEFT_OUT)
