"""Every route of the API by every method that it takes: who may, what is sent, what comes back; and how to ask it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from django.db import transaction

from api import auth_urls, urls
from api.render import file_token

NOBODY, VIEWER, USER, OP, ADMIN = "nobody", "Viewer", "User", "Op", "Admin"
RANK = [NOBODY, VIEWER, USER, OP, ADMIN]
RUN = "dags/{dag_id}/dagRuns/{dag_run_id}"
TASK = f"{RUN}/taskInstances/{{task_id}}"
MAPPED = f"{TASK}/{{map_index}}"
GROUP = f"{RUN}/taskGroupInstances/{{group_id}}"
CONNECTION = {"connection_id": "pg", "conn_type": "http"}
BACKFILL = {"dag_id": "daily", "from_date": "2026-01-01T00:00:00Z", "to_date": "2026-01-03T00:00:00Z"}

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
    ("POST", "dags/{dag_id}/favorite"): (VIEWER, 204),
    ("POST", "dags/{dag_id}/unfavorite"): (VIEWER, 204),
    ("GET", "dags/{dag_id}/tasks"): (VIEWER, 200),
    ("GET", "dags/{dag_id}/tasks/{task_id}"): (VIEWER, 200),
    ("GET", "dags/{dag_id}/dagVersions"): (VIEWER, 200),
    ("GET", "dags/{dag_id}/dagVersions/{version_number}"): (VIEWER, 200),
    ("POST", "dags/{dag_id}/clearTaskInstances"): (USER, 200),
    ("GET", "dags/{dag_id}/assets/queuedEvents"): (VIEWER, 200),
    ("DELETE", "dags/{dag_id}/assets/queuedEvents"): (USER, 204),
    ("GET", "dags/{dag_id}/assets/{asset_id}/queuedEvents"): (VIEWER, 200),
    ("DELETE", "dags/{dag_id}/assets/{asset_id}/queuedEvents"): (USER, 204),
    ("GET", "backfills"): (VIEWER, 200),
    ("POST", "backfills"): (USER, 200),
    ("POST", "backfills/dry_run"): (USER, 200),
    ("GET", "backfills/{backfill_id}"): (VIEWER, 200),
    ("PUT", "backfills/{backfill_id}/pause"): (USER, 200),
    ("PUT", "backfills/{backfill_id}/unpause"): (USER, 200),
    ("PUT", "backfills/{backfill_id}/cancel"): (USER, 200),
    ("GET", "dagTags"): (VIEWER, 200),
    ("GET", "dagStats"): (VIEWER, 200),
    ("GET", "dagWarnings"): (VIEWER, 200),
    ("GET", "dagSources/{dag_id}"): (VIEWER, 200),
    ("PUT", "parseDagFile/{file_token}"): (USER, 201),
    ("GET", "dags/{dag_id}/dagRuns"): (VIEWER, 200),
    ("POST", "dags/{dag_id}/dagRuns"): (USER, 200),
    ("PATCH", "dags/{dag_id}/dagRuns"): (USER, 200),
    ("POST", "dags/{dag_id}/dagRuns/list"): (VIEWER, 200),
    ("POST", "dags/{dag_id}/clearDagRuns"): (USER, 200),
    ("POST", "dags/{dag_id}/clearPartitions"): (USER, 200),
    ("GET", RUN): (VIEWER, 200),
    ("PATCH", RUN): (USER, 200),
    ("DELETE", RUN): (USER, 204),
    ("POST", f"{RUN}/clear"): (USER, 200),
    ("GET", f"{RUN}/wait"): (VIEWER, 200),
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
    ("GET", f"{TASK}/xcomEntries/{{xcom_key}}"): (VIEWER, 200),
    ("PATCH", f"{TASK}/xcomEntries/{{xcom_key}}"): (USER, 200),
    ("DELETE", f"{TASK}/xcomEntries/{{xcom_key}}"): (USER, 204),
    ("GET", f"{TASK}/state-store"): (VIEWER, 200),
    ("DELETE", f"{TASK}/state-store"): (USER, 204),
    ("GET", f"{TASK}/state-store/{{key}}"): (VIEWER, 200),
    ("PUT", f"{TASK}/state-store/{{key}}"): (USER, 204),
    ("PATCH", f"{TASK}/state-store/{{key}}"): (USER, 200),
    ("DELETE", f"{TASK}/state-store/{{key}}"): (USER, 204),
    ("GET", MAPPED): (VIEWER, 200),
    ("PATCH", MAPPED): (USER, 200),
    ("PATCH", f"{MAPPED}/dry_run"): (USER, 200),
    ("GET", f"{MAPPED}/dependencies"): (VIEWER, 200),
    ("GET", f"{MAPPED}/tries"): (VIEWER, 200),
    ("GET", f"{MAPPED}/tries/{{task_try_number}}"): (VIEWER, 200),
    ("GET", f"{MAPPED}/hitlDetails"): (VIEWER, 200),
    ("PATCH", f"{MAPPED}/hitlDetails"): (USER, 200),
    ("GET", f"{MAPPED}/hitlDetails/tries/{{try_number}}"): (VIEWER, 200),
    ("GET", f"{RUN}/hitlDetails"): (VIEWER, 200),
    ("PATCH", GROUP): (USER, 200),
    ("PATCH", f"{GROUP}/dry_run"): (USER, 200),
    ("GET", "assets"): (VIEWER, 200),
    ("GET", "assets/aliases"): (VIEWER, 200),
    ("GET", "assets/aliases/{asset_alias_id}"): (VIEWER, 200),
    ("GET", "assets/events"): (VIEWER, 200),
    ("POST", "assets/events"): (USER, 200),
    ("GET", "assets/{asset_id}"): (VIEWER, 200),
    ("POST", "assets/{asset_id}/materialize"): (USER, 200),
    ("GET", "assets/{asset_id}/queuedEvents"): (VIEWER, 200),
    ("DELETE", "assets/{asset_id}/queuedEvents"): (USER, 204),
    ("GET", "assets/{asset_id}/state-store"): (VIEWER, 200),
    ("DELETE", "assets/{asset_id}/state-store"): (OP, 204),
    ("GET", "assets/{asset_id}/state-store/{key}"): (VIEWER, 200),
    ("PUT", "assets/{asset_id}/state-store/{key}"): (OP, 204),
    ("DELETE", "assets/{asset_id}/state-store/{key}"): (OP, 204),
    ("GET", "pools"): (VIEWER, 200),
    ("POST", "pools"): (OP, 201),
    ("PATCH", "pools"): (OP, 200),
    ("GET", "pools/{pool_name}"): (VIEWER, 200),
    ("PATCH", "pools/{pool_name}"): (OP, 200),
    ("DELETE", "pools/{pool_name}"): (OP, 204),
    ("GET", "limits"): (VIEWER, 200),
    ("POST", "limits"): (OP, 201),
    ("GET", "limits/{limit_name}"): (VIEWER, 200),
    ("PATCH", "limits/{limit_name}"): (OP, 200),
    ("DELETE", "limits/{limit_name}"): (OP, 204),
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
    ("GET", "connections/enqueue-test"): (OP, 404),
    ("POST", "connections/enqueue-test"): (OP, 403),
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
    ("GET", "callbacks/{callback_id}/logs"): (VIEWER, 200),
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
    ("POST", f"{TASK}/xcomEntries"): {"key": "new", "value": 1},
    ("PATCH", f"{TASK}/xcomEntries/{{xcom_key}}"): {"value": 2},
    ("PATCH", MAPPED): {"note": "x"},
    ("PATCH", f"{MAPPED}/dry_run"): {"new_state": "failed"},
    ("PATCH", f"{MAPPED}/hitlDetails"): {"chosen_options": ["Yes"]},
    ("PATCH", GROUP): {"new_state": "failed"},
    ("PATCH", f"{GROUP}/dry_run"): {"new_state": "failed"},
    ("POST", "assets/events"): {"asset_id": 1},
    ("POST", "pools"): {"name": "p", "slots": 1},
    ("PATCH", "pools"): {"actions": []},
    ("PATCH", "pools/{pool_name}"): {"slots": 3},
    ("POST", "limits"): {"name": "new", "amount": 1},
    ("PATCH", "limits/{limit_name}"): {"amount": 3},
    ("POST", "variables"): {"key": "w", "value": "1"},
    ("PATCH", "variables"): {"actions": []},
    ("PATCH", "variables/{variable_key}"): {"key": "v", "value": "2"},
    ("POST", "connections"): {**CONNECTION, "connection_id": "new"},
    ("PATCH", "connections"): {"actions": []},
    ("POST", "connections/test"): CONNECTION,
    ("POST", "connections/enqueue-test"): CONNECTION,
    ("PUT", f"{TASK}/state-store/{{key}}"): {"value": {"n": 1}, "expires_at": None},
    ("PATCH", f"{TASK}/state-store/{{key}}"): {"value": [1]},
    ("PUT", "assets/{asset_id}/state-store/{key}"): {"value": "x"},
    ("POST", "backfills"): BACKFILL,
    ("POST", "backfills/dry_run"): BACKFILL,
    ("POST", "dags/{dag_id}/clearPartitions"): {"partition_key": "p", "clear_task_instances": True, "dry_run": False},
    ("PATCH", "connections/{connection_id}"): CONNECTION,
}
#: what Airflow's document does not have
OURS = {
    "openapi.json",
    "limits",
    "limits/{limit_name}",
    "workers",
    "callbacks",
    "callbacks/{callback_id}",
    "callbacks/{callback_id}/logs",
    "callbacks/{callback_id}/replay",
}
#: ids that there are in the fixture ``world``; a batch is asked of all DAGs and runs
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
    "pool_name": "small",
    "limit_name": "warehouse",
    "variable_key": "v",
    "connection_id": "pg",
    "import_error_id": "1",
    "backfill_id": "1000000000",
    "event_log_id": "1000000000",
    "callback_id": "1000000000",
    "section": "scheduler",
    "option": "port",
    "xcom_key": "k",
    "key": "k",
    "group_id": "g",
}
#: routes that are about other things than the rest
_IN_FLOW = {"dag_id": "flow", "dag_run_id": "run0"}
OTHER_IDS: dict[str, dict[str, str]] = {
    "dags/{dag_id}/dagRuns/list": {"dag_id": "~"},
    f"{RUN}/taskInstances/list": {"dag_id": "~", "dag_run_id": "~"},
    f"{RUN}/wait": {"dag_id": "flow", "dag_run_id": "ended"},
    f"{TASK}/listMapped": {**_IN_FLOW, "task_id": "twice"},
    f"{MAPPED}/hitlDetails": {**_IN_FLOW, "task_id": "ask"},
    f"{MAPPED}/hitlDetails/tries/{{try_number}}": {**_IN_FLOW, "task_id": "ask"},
    f"{RUN}/hitlDetails": _IN_FLOW,
    GROUP: _IN_FLOW,
    f"{GROUP}/dry_run": _IN_FLOW,
    "dags/{dag_id}/clearPartitions": {"dag_id": "flow"},
}
QUERIES: dict[tuple[str, str], str] = {
    ("GET", "backfills"): "dag_id=flow",
    ("GET", f"{RUN}/wait"): "interval=1&result=plain",
}
HEADERS: dict[tuple[str, str], dict[str, str]] = {
    ("GET", "connections/enqueue-test"): {"Airflow-Connection-Test-Token": "x"},
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


def address(route: str, method: str = "", **ids: str) -> str:
    """The path of a route with ids that there are, but for those given."""
    names = re.findall(r"{(\w+)}", route)
    if "file_token" in names:
        ids.setdefault("file_token", file_token("dags", "etl.py"))
    known = {**IDS, **OTHER_IDS.get(route, {}), **ids}
    path = route.format(**{name: quote(known[name], safe="~") for name in names})
    query = QUERIES.get((method, route))
    return (path if path.startswith("/") else f"/api/v2/{path}") + (f"?{query}" if query else "")


def ask(http: Any, method: str, route: str, body: Any = ..., **ids: str) -> tuple[Any, str]:
    """One request and the text of its answer, undone afterwards: every request meets the same world."""
    if body is ...:
        body = BODIES.get((method, route), {} if method in ("POST", "PUT", "PATCH") else None)
    more = {"data": body, "content_type": "application/json"} if body is not None else {}
    headers = HEADERS.get((method, route), {})
    with transaction.atomic():
        answer = getattr(http.client, method.lower())(address(route, method, **ids), headers=headers, **more)
        told = b"".join(answer.streaming_content) if answer.streaming else answer.content
        transaction.set_rollback(True)
    return answer, told.decode()
