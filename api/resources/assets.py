"""Assets, their aliases and events, and the events that wait to start a run."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.actions import assets as asset_actions
from scheduler_app.models import Asset, AssetAlias, AssetEvent, AssetQueuedEvent
from scheduler_app.queries import rows as queries

from .. import bodies, errors, pages, params
from ..endpoint import Endpoint
from ..render import stamp
from .dags import visible


def asset(row: Asset) -> dict[str, Any]:
    """``AssetResponse`` of a row of ``queries.rows.assets``."""
    uses = list(row.uses.all())
    last_id, last_at = getattr(row, "last_event_id", None), getattr(row, "last_event_at", None)
    return {
        "id": row.pk,
        "name": row.name,
        "uri": row.uri,
        "group": row.group,
        "extra": row.extra,
        "created_at": stamp(row.created_at),
        "updated_at": stamp(row.updated_at),
        "scheduled_dags": [_use(use, task=False) for use in uses if use.kind == "schedule"],
        "producing_tasks": [_use(use, task=True) for use in uses if use.kind == "outlet"],
        "consuming_tasks": [_use(use, task=True) for use in uses if use.kind == "inlet"],
        "aliases": [alias(item) for item in row.aliases.all()],
        "watchers": [],
        "last_asset_event": {"id": last_id, "timestamp": stamp(last_at)} if last_id else None,
    }


def _use(use: Any, *, task: bool) -> dict[str, Any]:
    found = {"dag_id": use.dag_id, "created_at": stamp(use.created_at), "updated_at": stamp(use.created_at)}
    return found | {"task_id": use.task_id} if task else found


def alias(row: AssetAlias) -> dict[str, Any]:
    return {"id": row.pk, "name": row.name, "group": row.group}


def event(row: AssetEvent) -> dict[str, Any]:
    """``AssetEventResponse`` of a row of ``queries.rows.asset_events``."""
    return {
        "id": row.pk,
        "asset_id": row.asset_id,
        "uri": row.asset.uri,
        "name": row.asset.name,
        "group": row.asset.group,
        "extra": row.extra,
        "source_task_id": row.source_task_id,
        "source_dag_id": row.source_dag_id,
        "source_run_id": row.source_run_id,
        "source_map_index": -1 if row.source_map_index is None else row.source_map_index,
        "created_dagruns": [
            {
                "run_id": run.run_id,
                "dag_id": run.dag_id,
                "logical_date": stamp(run.logical_date),
                "start_date": stamp(run.start_date or run.queued_at or run.run_after),
                "end_date": stamp(run.end_date),
                "state": run.state,
                "data_interval_start": stamp(run.data_interval_start),
                "data_interval_end": stamp(run.data_interval_end),
                "partition_key": run.partition_key,
                "triggering": True,
            }
            for run in row.created_dagruns.all()
        ],
        "timestamp": stamp(row.timestamp),
        "partition_key": row.partition_key,
    }


class AssetsView(Endpoint):
    kind = "asset"
    filters = (
        *params.matching("name", "name"),
        *params.matching("uri", "uri"),
    )
    order = {name: name for name in ("id", "name", "uri", "created_at", "updated_at")}

    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = queries.assets(access.assets(self.actor))
        if params.get(query, "only_active", params.flag, True):
            rows = rows.filter(is_active=True)
        if dag_ids := query.getlist("dag_ids"):
            seen = access.dags(self.actor).filter(pk__in=dag_ids)
            rows = rows.filter(uses__dag__in=seen).distinct()
        found = pages.page(pages.ordered(params.narrow(rows, self.filters, query), query, self.order, ["id"]), query)
        return Response({"assets": [asset(row) for row in found.rows], "total_entries": found.total})


class AssetView(Endpoint):
    kind = "asset"

    def get(self, request: Request, asset_id: str) -> Response:
        number = params.in_path(asset_id, "asset_id")
        row = queries.assets(access.assets(self.actor)).filter(pk=number).first()
        if row is None:
            raise errors.Problem(404, f"The Asset with ID: `{asset_id}` was not found")
        return Response(asset(row))


class AliasesView(Endpoint):
    kind = "asset"
    order = {name: name for name in ("id", "name", "group")}

    def get(self, request: Request) -> Response:
        rows = params.narrow(AssetAlias.objects.all(), params.matching("name", "name"), request.query_params)
        found = pages.page(pages.ordered(rows, request.query_params, self.order, ["id"]), request.query_params)
        return Response({"asset_aliases": [alias(row) for row in found.rows], "total_entries": found.total})


class AliasView(Endpoint):
    kind = "asset"

    def get(self, request: Request, asset_alias_id: str) -> Response:
        row = AssetAlias.objects.filter(pk=params.in_path(asset_alias_id, "asset_alias_id")).first()
        if row is None:
            raise errors.Problem(404, f"The Asset Alias with ID: `{asset_alias_id}` was not found")
        return Response(alias(row))


class EventBody(bodies.Body):
    asset_id = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    partition_key = bodies.Text(required=False, allow_null=True, max_length=250)
    extra = bodies.Conf(required=False)


class AssetEventsView(Endpoint):
    kind = "asset_event"
    filters = (
        params.exact("asset_id", read=params.whole),
        params.exact("source_dag_id"),
        params.exact("source_task_id"),
        params.exact("source_run_id"),
        params.exact("source_map_index", read=params.whole),
        *params.matching("name", "asset__name"),
        *params.bounds("timestamp"),
    )
    order = {
        "id": "id",
        "timestamp": "timestamp",
        "asset_id": "asset_id",
        "source_dag_id": "source_dag_id",
        "source_task_id": "source_task_id",
        "source_run_id": "source_run_id",
        "source_map_index": "source_map_index",
    }

    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = params.narrow(queries.asset_events(access.asset_events(self.actor)), self.filters, query)
        found = pages.page(pages.ordered(rows, query, self.order, ["timestamp"]), query)
        return Response({"asset_events": [event(row) for row in found.rows], "total_entries": found.total})

    def post(self, request: Request) -> Response:
        body = bodies.read(request, EventBody)
        made = asset_actions.create_event(
            self.actor,
            body["asset_id"],
            self.now,
            extra=body.get("extra"),
            partition_key=body.get("partition_key"),
        )
        return Response(event(queries.asset_events(access.asset_events(self.actor)).get(pk=made.pk)))


def _queued(row: AssetQueuedEvent) -> dict[str, Any]:
    return {
        "dag_id": row.dag_id,
        "asset_id": row.asset_id,
        "created_at": stamp(row.created_at),
        "dag_display_name": row.dag.dag_display_name or row.dag_id,
    }


class QueuedEventsView(Endpoint):
    """The queued events of an asset, of a DAG, or of an asset for a DAG (then one row: the newest)."""

    kind = "queued_event"

    def get(self, request: Request, dag_id: str | None = None, asset_id: str | None = None) -> Response:
        rows = access.queued_events(self.actor).select_related("dag").order_by("created_at", "id")
        before = params.get(request.query_params, "before", params.moment)
        number = params.in_path(asset_id, "asset_id") if asset_id is not None else None
        if dag_id is not None:
            visible(self.actor, dag_id)
            rows = rows.filter(dag_id=dag_id)
        rows = rows.filter(asset_id=number) if number is not None else rows
        rows = rows.filter(created_at__lt=before) if before is not None else rows
        if dag_id is not None and asset_id is not None:
            newest = rows.last()
            if newest is None:
                raise errors.Problem(
                    404, f"Queued event with dag_id: `{dag_id}` and asset_id: `{asset_id}` was not found"
                )
            return Response(_queued(newest))
        found = list(rows)
        return Response({"queued_events": [_queued(row) for row in found], "total_entries": len(found)})

    def delete(self, request: Request, dag_id: str | None = None, asset_id: str | None = None) -> Response:
        asset_actions.delete_queued(
            self.actor,
            self.now,
            dag_id=dag_id,
            asset_id=params.in_path(asset_id, "asset_id") if asset_id is not None else None,
            before=params.get(request.query_params, "before", params.moment),
        )
        return Response(status=204)
