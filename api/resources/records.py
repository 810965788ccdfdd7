"""What was recorded: import errors of DAG files, and the audit (Airflow's event log)."""

from __future__ import annotations

import json
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.models import Audit, DagModel, ParseError

from .. import errors, pages, params
from ..endpoint import Endpoint
from ..render import stamp


def import_error(row: ParseError) -> dict[str, Any]:
    """``ImportErrorResponse``."""
    return {
        "import_error_id": row.pk,
        "timestamp": stamp(row.timestamp),
        "filename": row.filename,
        "bundle_name": row.bundle_name,
        "stack_trace": row.stack_trace,
    }


class ImportErrorsView(Endpoint):
    kind = "import_error"
    filters = (
        *params.matching("filename", "filename"),
        params.exact("filename"),
        params.exact("bundle_name"),
    )
    order = {
        "id": "id",
        "import_error_id": "id",
        "timestamp": "timestamp",
        "filename": "filename",
        "bundle_name": "bundle_name",
        "stacktrace": "stack_trace",
    }

    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = params.narrow(access.import_errors(self.actor), self.filters, query)
        found = pages.page(pages.ordered(rows, query, self.order, ["id"]), query)
        return Response({"import_errors": [import_error(row) for row in found.rows], "total_entries": found.total})


class ImportErrorView(Endpoint):
    kind = "import_error"

    def get(self, request: Request, import_error_id: str) -> Response:
        number = params.in_path(import_error_id, "import_error_id")
        row = access.import_errors(self.actor).filter(pk=number).first()
        if row is None:
            raise errors.Problem(404, f"The ImportError with import_error_id: `{import_error_id}` was not found")
        return Response(import_error(row))


def event_logs(rows: list[Audit]) -> list[dict[str, Any]]:
    """``EventLogResponse``; one statement of its own for the names of DAGs."""
    ids = {row.dag_id for row in rows if row.dag_id}
    names = dict(DagModel.objects.filter(pk__in=ids).values_list("dag_id", "dag_display_name")) if ids else {}
    return [
        {
            "event_log_id": row.pk,
            "when": stamp(row.when),
            "dag_id": row.dag_id,
            "task_id": row.task_id,
            "run_id": row.run_id,
            "map_index": row.map_index,
            "try_number": row.try_number,
            "event": row.event,
            "logical_date": stamp(row.logical_date),
            "owner": row.owner,
            "extra": _extra(row),
            "dag_display_name": names.get(row.dag_id or "") or row.dag_id,
            "task_display_name": row.task_id,
        }
        for row in rows
    ]


def _extra(row: Audit) -> str | None:
    """Why, before and after, as the one text that the API has for them."""
    said = {"reason": row.reason, "before": row.before, "after": row.after, **(row.extra or {})}
    kept = {key: value for key, value in said.items() if value is not None}
    return json.dumps(kept) if kept else None


class EventLogsView(Endpoint):
    kind = "audit"
    filters = (
        params.exact("dag_id"),
        params.exact("task_id"),
        params.exact("run_id"),
        params.exact("map_index", read=params.whole),
        params.exact("try_number", read=params.whole),
        params.exact("owner"),
        params.exact("event"),
        params.any_of("included_events", "event"),
        params.Param("excluded_events", params.text, lambda rows, values: rows.exclude(event__in=values), many=True),
        params.Param("before", params.moment, lambda rows, value: rows.filter(when__lt=value)),
        params.Param("after", params.moment, lambda rows, value: rows.filter(when__gt=value)),
        *params.matching("dag_id", "dag_id"),
        *params.matching("task_id", "task_id"),
        *params.matching("run_id", "run_id"),
        *params.matching("owner", "owner"),
        *params.matching("event", "event"),
    )
    order = {
        name: name for name in ("id", "dag_id", "task_id", "run_id", "event", "logical_date", "owner", "extra", "when")
    } | {"event_log_id": "id", "dttm": "when"}

    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = params.narrow(access.audit(self.actor), self.filters, query)
        found = pages.page(pages.ordered(rows, query, self.order, ["id"]), query)
        return Response({"event_logs": event_logs(found.rows), "total_entries": found.total})


class EventLogView(Endpoint):
    kind = "audit"

    def get(self, request: Request, event_log_id: str) -> Response:
        number = params.in_path(event_log_id, "event_log_id")
        row = access.audit(self.actor).filter(pk=number).first()
        if row is None:
            raise errors.Problem(404, f"The Event Log with id: `{event_log_id}` not found")
        return Response(event_logs([row])[0])
