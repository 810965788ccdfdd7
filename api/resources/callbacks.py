"""Callbacks of DAGs and tasks: what became of them, and running one again. Airflow's API has none of this."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.actions import callbacks as callback_actions
from scheduler_app.conf import conf
from scheduler_app.models import Callback
from scheduler_app.queries import callbacks as queries

from .. import bodies, errors, pages, params
from ..endpoint import Endpoint
from ..render import stamp
from . import logs

FILTERS = (
    params.exact("dag_id"),
    params.exact("dag_run_id", "dag_run__run_id"),
    params.exact("task_id", "task_name"),
    params.exact("map_index", "task_map_index", params.whole),
    params.exact("kind"),
    params.state_in("state", queries.STATES),
)
ORDER = {
    "callback_id": "id",
    "created_at": "created_at",
    "next_at": "next_at",
    "started_at": "started_at",
    "finished_at": "finished_at",
    "state": "state",
    "kind": "kind",
    "dag_id": "dag_id",
}


def document(row: Any) -> dict[str, Any]:
    """A row of ``queries.callbacks.listed``."""
    return {
        "callback_id": row.pk,
        "kind": row.kind,
        "dag_id": row.dag_id,
        "dag_run_id": row.dag_run.run_id if row.dag_run else None,
        "task_id": row.task_name,
        "map_index": row.task_map_index,
        "try_number": row.try_number,
        "state": row.state,
        "attempts": row.attempts,
        "created_at": stamp(row.created_at),
        "next_at": stamp(row.next_at) if row.state == "pending" else None,
        "started_at": stamp(row.started_at),
        "finished_at": stamp(row.finished_at),
        "error": row.error,
        "reason": row.payload.get("reason"),
    }


class CallbacksView(Endpoint):
    kind = "run"

    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = params.narrow(queries.listed(access.callbacks(self.actor)), FILTERS, query)
        found = pages.page(pages.ordered(rows, query, ORDER, ["-callback_id"]), query)
        return Response({"callbacks": [document(row) for row in found.rows], "total_entries": found.total})


def _one(actor: access.Actor, callback_id: str) -> Any:
    number = params.in_path(callback_id, "callback_id")
    row = queries.listed(access.callbacks(actor)).filter(pk=number).first()
    if row is None:
        raise errors.Problem(404, f"The Callback with id: `{callback_id}` was not found")
    return row


class CallbackView(Endpoint):
    kind = "run"

    def get(self, request: Request, callback_id: str) -> Response:
        return Response(document(_one(self.actor, callback_id)))


class CallbackLogView(Endpoint):
    """What it wrote: a run's own callbacks of one kind share a log, a task's write into the log of its try."""

    kind = "run"

    def get(self, request: Request, callback_id: str) -> Response | StreamingHttpResponse:
        row = _one(self.actor, callback_id)
        if row.task_name is not None and not access.can(self.actor, "view", "task"):
            raise errors.Problem(403, "Forbidden")
        file = queries.log_file(conf().log_folder, row)
        return logs.answer(request, file, f"the callback {row.kind}", ended=row.state in ("success", "failed"))


class ReplayBody(bodies.Body):
    reason = bodies.Text(required=False, allow_null=True, max_length=bodies.NOTE)


class ReplayView(Endpoint):
    """Runs it again, whether it succeeded or was given up."""

    kind = "run"
    needs = {"POST": ("change", "run")}

    def post(self, request: Request, callback_id: str) -> Response:
        number = params.in_path(callback_id, "callback_id")
        body = bodies.read(request, ReplayBody)
        row: Callback = callback_actions.replay(self.actor, number, self.now, reason=body.get("reason"))
        return Response(document(_one(self.actor, str(row.pk))))
