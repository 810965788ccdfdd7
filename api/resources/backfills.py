"""Backfills: runs of a range of past slots of a DAG's schedule."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.actions import backfills as actions
from scheduler_app.models import Backfill
from scheduler_app.models.backfill import REPROCESS

from .. import bodies, errors, pages, params, render
from ..endpoint import Endpoint

ORDER = {"id": "id"}
_ABOUT_RUNS = {"POST": ("add", "run"), "PUT": ("change", "run")}


def document(row: Backfill) -> dict[str, Any]:
    """``BackfillResponse``."""
    return {
        "id": row.pk,
        "dag_id": row.dag_id,
        "dag_display_name": row.dag.dag_display_name or row.dag_id,
        "from_date": render.stamp(row.from_date),
        "to_date": render.stamp(row.to_date),
        "dag_run_conf": row.dag_run_conf,
        "is_paused": row.is_paused,
        "reprocess_behavior": row.reprocess_behavior,
        "max_active_runs": row.max_active_runs,
        "created_at": render.stamp(row.created_at),
        "completed_at": render.stamp(row.completed_at),
        "updated_at": render.stamp(row.updated_at),
    }


class BackfillBody(bodies.Body):
    dag_id = bodies.Text()
    from_date = bodies.Moment()
    to_date = bodies.Moment()
    run_backwards = bodies.Flag(default=False)
    dag_run_conf = bodies.Conf(required=False, allow_null=True)
    reprocess_behavior = serializers.ChoiceField(choices=REPROCESS, default="none")
    max_active_runs = serializers.IntegerField(default=10, max_value=2**31 - 1)
    run_on_latest_version = bodies.Flag(required=False, allow_null=True)


def _wanted(request: Request) -> actions.Wanted:
    body = bodies.read(request, BackfillBody)
    return actions.Wanted(
        dag_id=body["dag_id"],
        from_date=body["from_date"],
        to_date=body["to_date"],
        reprocess_behavior=body["reprocess_behavior"],
        reverse=body["run_backwards"],
        max_active_runs=body["max_active_runs"],
        conf=body.get("dag_run_conf") or {},
        run_on_latest_version=body.get("run_on_latest_version"),
    )


def _visible(actor: Actor) -> QuerySet[Backfill]:
    return Backfill.objects.filter(dag__in=access.dags(actor)).select_related("dag")


class BackfillsView(Endpoint):
    kind = "run"
    needs = _ABOUT_RUNS

    def get(self, request: Request) -> Response:
        dag_id = params.get(request.query_params, "dag_id", params.text, "")
        if not dag_id:
            raise errors.not_valid("missing", ["query", "dag_id"], "Field required")
        rows = pages.ordered(_visible(self.actor).filter(dag_id=dag_id), request.query_params, ORDER, ["id"])
        found = pages.page(rows, request.query_params)
        return Response({"backfills": [document(row) for row in found.rows], "total_entries": found.total})

    def post(self, request: Request) -> Response:
        return Response(document(actions.create(self.actor, _wanted(request), self.now)))


class DryRunView(Endpoint):
    """What would be run, in its order; nothing is changed."""

    kind = "run"
    needs = _ABOUT_RUNS

    def post(self, request: Request) -> Response:
        wanted = _wanted(request)
        plans = actions.preview(self.actor, wanted, self.now)
        key_of = actions.partition_keys(wanted.dag_id)
        shown = [
            {
                "logical_date": render.stamp(plan.logical_date),
                "partition_date": None,
                "partition_key": key_of(plan.run_after),
            }
            for plan in plans
        ]
        return Response({"backfills": shown, "total_entries": len(shown)})


class BackfillView(Endpoint):
    kind = "run"

    def get(self, request: Request, backfill_id: str) -> Response:
        number = params.in_path(backfill_id, "backfill_id")
        row = _visible(self.actor).filter(pk=number).first()
        if row is None:
            raise errors.Problem(404, f"Could not find backfill with id {number}")
        return Response(document(row))


class PauseView(Endpoint):
    kind = "run"
    needs = _ABOUT_RUNS
    paused: ClassVar[bool] = True

    def put(self, request: Request, backfill_id: str) -> Response:
        number = params.in_path(backfill_id, "backfill_id")
        return Response(document(actions.set_paused(self.actor, number, self.paused, self.now)))


class UnpauseView(PauseView):
    paused = False


class CancelView(Endpoint):
    kind = "run"
    needs = _ABOUT_RUNS

    def put(self, request: Request, backfill_id: str) -> Response:
        number = params.in_path(backfill_id, "backfill_id")
        return Response(document(actions.cancel(self.actor, number, self.now)))
