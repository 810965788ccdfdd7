"""Questions that tasks ask people, and their answers (Human in the Loop)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access, wire
from scheduler_app.actions import hitl as hitl_actions
from scheduler_app.engine import states
from scheduler_app.models import TaskInstance
from scheduler_app.queries import hitl as questions
from scheduler_app.queries import rows as queries

from .. import bodies, errors, pages, params
from ..endpoint import Endpoint
from ..render import stamp
from . import documents
from .task_instances import in_run, missing

FILTERS = (
    *params.matching("dag_id", "dag_id"),
    params.exact("task_id"),
    *params.matching("task_id", "task_id"),
    params.exact("map_index", read=params.whole),
    params.state_in("state", (*states.TASK_STATES, "awaiting_input")),
    params.exact("response_received", "is_answered", params.flag),
    params.any_of("responded_by_user_id", "answer__responded_by_user__id"),
    params.any_of("responded_by_user_name", "answer__responded_by_user__name"),
    params.exact("subject_search", "question__subject__icontains"),
    params.exact("body_search", "question__body__icontains"),
    *params.bounds("created_at", "asked_at"),
)
ORDER = {
    "ti_id": "pk",
    "subject": "question__subject",
    "responded_at": "answer__responded_at",
    "created_at": "asked_at",
    "responded_by_user_id": "answer__responded_by_user__id",
    "responded_by_user_name": "answer__responded_by_user__name",
    "dag_id": "dag_id",
    "run_id": "run_name",
    "task_display_name": "task_id",
    "run_after": "dag_run__run_after",
    "rendered_map_index": "rendered_map_index",
    "task_instance_operator": "operator_name",
    "task_instance_state": "state",
}


def _documents(rows: list[TaskInstance]) -> list[dict[str, Any]]:
    """``HITLDetail`` of rows of :func:`_full`."""
    return [_document(row, written) for row, written in zip(rows, documents.task_instances(rows), strict=True)]


def _document(row: Any, written: dict[str, Any]) -> dict[str, Any]:
    question, answer = wire.plain(row.question), wire.plain(row.answer) or {}
    return {
        "options": question["options"],
        "subject": question["subject"],
        "body": question.get("body"),
        "defaults": question.get("defaults"),
        "multiple": bool(question.get("multiple")),
        "params": question.get("params") or {},
        "assigned_users": question.get("assigned_users") or [],
        "created_at": stamp(row.asked_at),
        "responded_by_user": answer.get("responded_by_user"),
        "responded_at": answer.get("responded_at"),
        "chosen_options": answer.get("chosen_options"),
        "params_input": answer.get("params_input") or {},
        "response_received": row.is_answered,
        "task_instance": written,
    }


def _full(rows: Any) -> Any:
    return questions.asking(queries.task_instances(rows))


def _asking(actor: access.Actor, dag_id: str, run_id: str, task_id: str, map_index: int) -> TaskInstance:
    """A task instance that asks something and may be seen; 404 otherwise."""
    rows = _full(access.task_instances(actor))
    row: TaskInstance | None = rows.filter(
        dag_id=dag_id, dag_run__run_id=run_id, task_id=task_id, map_index=map_index
    ).first()
    if row is None:
        raise errors.Problem(404, f"{missing(dag_id, run_id, task_id, map_index)}, or it asks nothing")
    return row


class DetailsView(Endpoint):
    kind = "task"

    def get(self, request: Request, dag_id: str, dag_run_id: str) -> Response:
        query = request.query_params
        rows = params.narrow(questions.asking(in_run(self.actor, dag_id, dag_run_id)), FILTERS, query)
        found = pages.page(pages.ordered(rows, query, ORDER, ["ti_id"]), query, _full)
        return Response({"hitl_details": _documents(found.rows), "total_entries": found.total})


class TryView(Endpoint):
    """The question of one try. A new try asks anew, so only the present one has it."""

    kind = "task"

    def get(
        self, request: Request, dag_id: str, dag_run_id: str, task_id: str, map_index: str, try_number: str
    ) -> Response:
        row = _asking(self.actor, dag_id, dag_run_id, task_id, params.in_path(map_index, "map_index"))
        if row.try_number != params.in_path(try_number, "try_number"):
            raise errors.Problem(
                404, f"The question of try {try_number} is not kept: the present try is {row.try_number}"
            )
        return Response(_document(row, documents.tries([row])[0]))


class AnswerBody(bodies.Body):
    chosen_options = serializers.ListField(child=bodies.Text(), min_length=1)
    params_input = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False)


class DetailView(Endpoint):
    kind = "task"

    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, map_index: str) -> Response:
        row = _asking(self.actor, dag_id, dag_run_id, task_id, params.in_path(map_index, "map_index"))
        return Response(_documents([row])[0])

    def patch(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, map_index: str) -> Response:
        index = params.in_path(map_index, "map_index")
        body = bodies.read(request, AnswerBody)
        answer = hitl_actions.respond(
            self.actor,
            dag_id,
            dag_run_id,
            task_id,
            index,
            body["chosen_options"],
            body.get("params_input") or {},
            self.now,
        )
        user = answer.pop("responded_by_user")
        return Response({"responded_by": user, **answer})
