"""Every route of the API, by every method that it takes, as each role and as nobody: the status is what the table says.

A route that is not in the table fails the first test, so that nobody adds one without saying who may use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from api import auth_urls, urls
from scheduler_app.models import Audit, Callback, DagVersion
from scheduler_app.models.dag import SourceBlob
from tests.api import published
from tests.rows import T0

NOBODY, VIEWER, USER, OP, ADMIN = "nobody", "Viewer", "User", "Op", "Admin"
RANK = [NOBODY, VIEWER, USER, OP, ADMIN]
RUN = "dags/{dag_id}/dagRuns/{dag_run_id}"
TASK = f"{RUN}/taskInstances/{{task_id}}"
MAPPED = f"{TASK}/{{map_index}}"
GROUP = f"{RUN}/taskGroupInstances/{{group_id}}"
CONNECTION = {"connection_id": "pg", "conn_type": "http"}

#: (method, route) → (the least role that may, what it is answered)
TABLE: dict[tuple[str, str], tuple[str, int]] = {
    ("POST", "/auth/token"): (NOBODY, 401),
    ("POST", "/auth/token/cli"): (NOBODY, 401),
    ("GET", "monitor/health"): (NOBODY, 200),
    ("GET", "version"): (NOBODY, 200),
    ("GET", "auth/login"): (NOBODY, 307),
    ("GET", "auth/logout"): (NOBODY, 307),
    ("GET", "openapi.json"): (NOBODY, 200),
    ("GET", "config"): (OP, 200),
    ("GET", "config/section/{section}/option/{option}"): (OP, 200),
    ("GET", "providers"): (VIEWER, 200),
    ("GET", "plugins"): (VIEWER, 200),
    ("GET", "plugins/importErrors"): (VIEWER, 200),
    ("GET", "jobs"): (VIEWER, 200),
    ("GET", "dags"): (VIEWER, 200),
    ("PATCH", "dags"): (USER, 200),
    ("GET", "dags/{dag_id}"): (VIEWER, 200),
    ("PATCH", "dags/{dag_id}"): (USER, 200),
    ("DELETE", "dags/{dag_id}"): (USER, 200),
    ("GET", "dags/{dag_id}/details"): (VIEWER, 200),
    ("GET", "dags/{dag_id}/tasks"): (VIEWER, 200),
    ("GET", "dags/{dag_id}/tasks/{task_id}"): (VIEWER, 200),
    ("GET", "dags/{dag_id}/dagVersions"): (VIEWER, 200),
    ("GET", "dags/{dag_id}/dagVersions/{version_number}"): (VIEWER, 200),
    ("POST", "dags/{dag_id}/clearTaskInstances"): (USER, 200),
    ("GET", "dags/{dag_id}/assets/queuedEvents"): (VIEWER, 200),
    ("DELETE", "dags/{dag_id}/assets/queuedEvents"): (USER, 204),
    ("GET", "dags/{dag_id}/assets/{asset_id}/queuedEvents"): (VIEWER, 200),
    ("DELETE", "dags/{dag_id}/assets/{asset_id}/queuedEvents"): (USER, 204),
    ("GET", "backfills"): (VIEWER, 422),
    ("POST", "backfills"): (USER, 422),
    ("POST", "backfills/dry_run"): (USER, 422),
    ("GET", "backfills/{backfill_id}"): (VIEWER, 404),
    ("PUT", "backfills/{backfill_id}/pause"): (USER, 404),
    ("PUT", "backfills/{backfill_id}/unpause"): (USER, 404),
    ("PUT", "backfills/{backfill_id}/cancel"): (USER, 404),
    ("GET", "dagTags"): (VIEWER, 200),
    ("GET", "dagStats"): (VIEWER, 200),
    ("GET", "dagWarnings"): (VIEWER, 200),
    ("GET", "dagSources/{dag_id}"): (VIEWER, 200),
    ("PUT", "parseDagFile/{file_token}"): (USER, 404),
    ("GET", "dags/{dag_id}/dagRuns"): (VIEWER, 200),
    ("POST", "dags/{dag_id}/dagRuns"): (USER, 200),
    ("PATCH", "dags/{dag_id}/dagRuns"): (USER, 200),
    ("POST", "dags/{dag_id}/dagRuns/list"): (VIEWER, 200),
    ("POST", "dags/{dag_id}/clearDagRuns"): (USER, 200),
    ("GET", RUN): (VIEWER, 200),
    ("PATCH", RUN): (USER, 200),
    ("DELETE", RUN): (USER, 204),
    ("POST", f"{RUN}/clear"): (USER, 200),
    ("GET", f"{RUN}/wait"): (VIEWER, 422),
    ("GET", f"{RUN}/upstreamAssetEvents"): (VIEWER, 200),
    ("GET", f"{RUN}/taskInstances"): (VIEWER, 200),
    ("PATCH", f"{RUN}/taskInstances"): (USER, 200),
    ("POST", f"{RUN}/taskInstances/list"): (VIEWER, 200),
    ("GET", TASK): (VIEWER, 200),
    ("PATCH", TASK): (USER, 200),
    ("DELETE", TASK): (USER, 200),
    ("PATCH", f"{TASK}/dry_run"): (USER, 200),
    ("GET", f"{TASK}/listMapped"): (VIEWER, 200),
    ("GET", f"{TASK}/tries"): (VIEWER, 200),
    ("GET", f"{TASK}/tries/{{task_try_number}}"): (VIEWER, 200),
    ("GET", f"{TASK}/dependencies"): (VIEWER, 200),
    ("GET", f"{TASK}/links"): (VIEWER, 200),
    ("GET", f"{TASK}/logs/{{try_number}}"): (VIEWER, 200),
    ("GET", f"{TASK}/externalLogUrl/{{try_number}}"): (VIEWER, 400),
    ("GET", f"{TASK}/xcomEntries"): (VIEWER, 200),
    ("POST", f"{TASK}/xcomEntries"): (USER, 201),
    ("GET", f"{TASK}/xcomEntries/{{xcom_key}}"): (VIEWER, 404),
    ("PATCH", f"{TASK}/xcomEntries/{{xcom_key}}"): (USER, 404),
    ("DELETE", f"{TASK}/xcomEntries/{{xcom_key}}"): (USER, 404),
    ("GET", MAPPED): (VIEWER, 200),
    ("PATCH", MAPPED): (USER, 200),
    ("PATCH", f"{MAPPED}/dry_run"): (USER, 200),
    ("GET", f"{MAPPED}/dependencies"): (VIEWER, 200),
    ("GET", f"{MAPPED}/tries"): (VIEWER, 200),
    ("GET", f"{MAPPED}/tries/{{task_try_number}}"): (VIEWER, 200),
    ("GET", f"{MAPPED}/hitlDetails"): (VIEWER, 404),
    ("PATCH", f"{MAPPED}/hitlDetails"): (USER, 404),
    ("GET", f"{MAPPED}/hitlDetails/tries/{{try_number}}"): (VIEWER, 404),
    ("GET", f"{RUN}/hitlDetails"): (VIEWER, 200),
    ("PATCH", GROUP): (USER, 404),
    ("PATCH", f"{GROUP}/dry_run"): (USER, 404),
    ("GET", "assets"): (VIEWER, 200),
    ("GET", "assets/aliases"): (VIEWER, 200),
    ("GET", "assets/aliases/{asset_alias_id}"): (VIEWER, 200),
    ("GET", "assets/events"): (VIEWER, 200),
    ("POST", "assets/events"): (USER, 200),
    ("GET", "assets/{asset_id}"): (VIEWER, 200),
    ("POST", "assets/{asset_id}/materialize"): (USER, 200),
    ("GET", "assets/{asset_id}/queuedEvents"): (VIEWER, 200),
    ("DELETE", "assets/{asset_id}/queuedEvents"): (USER, 204),
    ("GET", "pools"): (VIEWER, 200),
    ("POST", "pools"): (OP, 201),
    ("PATCH", "pools"): (OP, 200),
    ("GET", "pools/{pool_name}"): (VIEWER, 200),
    ("PATCH", "pools/{pool_name}"): (OP, 200),
    ("DELETE", "pools/{pool_name}"): (OP, 400),
    ("GET", "variables"): (OP, 200),
    ("POST", "variables"): (OP, 201),
    ("PATCH", "variables"): (OP, 200),
    ("GET", "variables/{variable_key}"): (OP, 200),
    ("PATCH", "variables/{variable_key}"): (OP, 200),
    ("DELETE", "variables/{variable_key}"): (OP, 204),
    ("GET", "connections"): (OP, 200),
    ("POST", "connections"): (OP, 201),
    ("PATCH", "connections"): (OP, 200),
    ("POST", "connections/test"): (OP, 403),
    ("GET", "connections/{connection_id}"): (OP, 200),
    ("PATCH", "connections/{connection_id}"): (OP, 200),
    ("DELETE", "connections/{connection_id}"): (OP, 204),
    ("GET", "importErrors"): (VIEWER, 200),
    ("GET", "importErrors/{import_error_id}"): (VIEWER, 200),
    ("GET", "eventLogs"): (OP, 200),
    ("GET", "eventLogs/{event_log_id}"): (OP, 200),
    ("GET", "workers"): (VIEWER, 200),
    ("GET", "callbacks"): (VIEWER, 200),
    ("GET", "callbacks/{callback_id}"): (VIEWER, 200),
    ("POST", "callbacks/{callback_id}/replay"): (USER, 200),
}
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/auth/token"): {"username": "a", "password": "b"},
    ("POST", "/auth/token/cli"): {"username": "a", "password": "b"},
    ("PATCH", "dags"): {"is_paused": True},
    ("PATCH", "dags/{dag_id}"): {"is_paused": True},
    ("POST", "dags/{dag_id}/clearTaskInstances"): {"dag_run_id": "run0"},
    ("POST", "dags/{dag_id}/dagRuns"): {"logical_date": None},
    ("PATCH", "dags/{dag_id}/dagRuns"): {"actions": []},
    ("POST", "dags/{dag_id}/clearDagRuns"): {"dag_runs": [{"dag_run_id": "run0"}]},
    ("PATCH", RUN): {"note": "x"},
    ("PATCH", f"{RUN}/taskInstances"): {"actions": []},
    ("PATCH", TASK): {"note": "x"},
    ("PATCH", f"{TASK}/dry_run"): {"new_state": "failed"},
    ("POST", f"{TASK}/xcomEntries"): {"key": "k", "value": 1},
    ("PATCH", f"{TASK}/xcomEntries/{{xcom_key}}"): {"value": 2},
    ("PATCH", MAPPED): {"note": "x"},
    ("PATCH", f"{MAPPED}/dry_run"): {"new_state": "failed"},
    ("PATCH", f"{MAPPED}/hitlDetails"): {"chosen_options": ["yes"]},
    ("PATCH", GROUP): {"new_state": "failed"},
    ("PATCH", f"{GROUP}/dry_run"): {"new_state": "failed"},
    ("POST", "assets/events"): {"asset_id": 1},
    ("POST", "pools"): {"name": "p", "slots": 1},
    ("PATCH", "pools"): {"actions": []},
    ("PATCH", "pools/{pool_name}"): {"slots": 3},
    ("POST", "variables"): {"key": "w", "value": "1"},
    ("PATCH", "variables"): {"actions": []},
    ("PATCH", "variables/{variable_key}"): {"key": "v", "value": "2"},
    ("POST", "connections"): {**CONNECTION, "connection_id": "new"},
    ("PATCH", "connections"): {"actions": []},
    ("POST", "connections/test"): CONNECTION,
    ("PATCH", "connections/{connection_id}"): CONNECTION,
}
#: what Airflow's document does not have
OURS = {"openapi.json", "workers", "callbacks", "callbacks/{callback_id}", "callbacks/{callback_id}/replay"}
#: ids that there are; a batch is asked of all DAGs and runs
IDS = {
    "dag_id": "etl",
    "dag_run_id": "run0",
    "task_id": "extract",
    "map_index": "-1",
    "task_try_number": "1",
    "try_number": "1",
    "version_number": "1",
    "asset_id": "1",
    "asset_alias_id": "1",
    "pool_name": "default_pool",
    "variable_key": "v",
    "connection_id": "pg",
    "import_error_id": "1",
    "backfill_id": "1",
    "event_log_id": "1000000000",
    "callback_id": "1000000000",
    "section": "scheduler",
    "option": "port",
    "xcom_key": "nope",
    "group_id": "nope",
    "file_token": "nope",
}


def routes() -> Iterator[tuple[str, str]]:
    """Every (method, route) that the tables of routes have, but for the one that answers what nobody else does."""
    for prefix, patterns in (("/auth/", auth_urls.urlpatterns), ("", urls.urlpatterns)):
        for pattern in patterns:
            view = pattern.callback.view_class
            if view is urls.UnknownView:
                continue
            route = str(pattern.pattern)
            for name, converter in pattern.pattern.converters.items():
                kind = "path" if type(converter).__name__ == "PathConverter" else "str"
                route = route.replace(f"<{kind}:{name}>", f"{{{name}}}")
            for method in ("get", "post", "put", "patch", "delete"):
                if hasattr(view, method):
                    yield method.upper(), prefix + route


def address(route: str) -> str:
    ids = IDS | ({"dag_id": "~", "dag_run_id": "~"} if route.endswith("/list") else {})
    path = route.format(**ids)
    return path.removeprefix("/") if path.startswith("/") else f"api/v2/{path}"


def ask(http: Any, method: str, route: str) -> Any:
    """One request, undone afterwards: every request meets the same world."""
    body = BODIES.get((method, route), {} if method in ("POST", "PUT", "PATCH") else None)
    more = {"data": body, "content_type": "application/json"} if body is not None else {}
    with transaction.atomic():
        answer = getattr(http.client, method.lower())(f"/{address(route)}", **more)
        transaction.set_rollback(True)
    return answer


@pytest.fixture
def audited(full):
    """The world, with one row in the audit, a callback, and the source of the DAG."""
    Callback.objects.create(
        pk=10**9, kind="dag_failure", dedupe_key="k", dag_id="etl", next_at=T0, created_at=T0, state="failed"
    )
    Audit.objects.create(pk=10**9, when=T0, event="trigger", dag_id="etl")
    SourceBlob.objects.create(sha256="a" * 64, content=b"print()")
    DagVersion.objects.update(source_sha256="a" * 64)


def test_the_table_names_every_route_and_no_other():
    there = list(routes())
    assert len(there) == len(set(there))
    assert set(there) == set(TABLE)


@pytest.mark.parametrize("role", RANK)
def test_each_role_is_answered_what_the_table_says(audited, as_role, role):
    http = as_role(None if role == NOBODY else role)
    wrong = {}
    for (method, route), (least, status) in TABLE.items():
        expected = status if RANK.index(role) >= RANK.index(least) else 401 if role == NOBODY else 403
        answer = ask(http, method, route)
        if answer.status_code != expected:
            wrong[f"{method} {route}"] = (
                answer.status_code,
                expected,
                answer.content[:200] if not answer.streaming else b"",
            )
    assert wrong == {}


def test_nobody_is_told_how_to_log_in_and_changes_nothing(audited, as_role):
    http = as_role(None)
    for (method, route), (least, _) in TABLE.items():
        if least != NOBODY:
            body = BODIES.get((method, route), {} if method in ("POST", "PUT", "PATCH") else None)
            more = {"data": body, "content_type": "application/json"} if body is not None else {}
            answer = getattr(http.client, method.lower())(f"/{address(route)}", **more)
            assert (answer.status_code, "detail" in answer.json()) == (401, True), (method, route)
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert Audit.objects.count() == 1


@pytest.mark.parametrize("role", [VIEWER, ADMIN])
def test_each_answer_fits_the_published_schema(audited, as_role, spec, role):
    http = as_role(role)
    wrong = []
    for method, route in TABLE:
        answer = ask(http, method, route)
        path = address(route)
        if (
            path.startswith("api/v2/")
            and route not in OURS
            and answer.headers.get("Content-Type", "").startswith("application/json")
        ):
            wrong += published.mistakes(spec, method, path.removeprefix("api/v2/"), answer)
    assert wrong == []
