"""Make an asset now: a run of the DAG whose task updates it."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.actions import trigger
from scheduler_app.models import AssetUse

from .. import bodies, errors, params
from ..endpoint import Endpoint
from . import documents
from .runs import TriggerBody, visible_run


class MaterializeBody(TriggerBody):
    logical_date = bodies.Moment(required=False, allow_null=True)


class MaterializeView(Endpoint):
    """404 when nobody makes the asset, 400 when more than one DAG does."""

    kind = "asset"
    needs = {"POST": ("add", "run")}

    def post(self, request: Request, asset_id: str) -> Response:
        number = params.in_path(asset_id, "asset_id")
        body = bodies.read(request, MaterializeBody) if request.data else {}
        makers = AssetUse.objects.filter(kind="outlet", asset_id=number, dag__in=access.dags(self.actor))
        dag_ids = sorted(set(makers.values_list("dag_id", flat=True)))
        if not dag_ids:
            raise errors.Problem(404, f"No DAG materializes asset with ID: {asset_id}")
        if len(dag_ids) > 1:
            raise errors.Problem(400, f"More than one DAG materializes asset with ID: {asset_id}: {', '.join(dag_ids)}")
        run = trigger.trigger_run(
            self.actor,
            dag_ids[0],
            self.now,
            run_id=body.get("dag_run_id"),
            logical_date=body.get("logical_date"),
            data_interval_start=body.get("data_interval_start"),
            data_interval_end=body.get("data_interval_end"),
            run_after=body.get("run_after"),
            conf=body.get("conf") or {},
            note=body.get("note"),
            partition_key=body.get("partition_key"),
            triggered_by="rest_api",
            run_type="asset_materialization",
        )
        return Response(documents.run(visible_run(self.actor, dag_ids[0], run.run_id)))
