"""Runs: list, one, trigger, patch, clear, delete, wait."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

from django.http import QueryDict, StreamingHttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access, wire
from scheduler_app.access import Actor
from scheduler_app.actions import notes, selection, trigger
from scheduler_app.actions import runs as run_actions
from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.models import DagRun, XCom, db
from scheduler_app.models.run import RUN_TYPES, in_states
from scheduler_app.queries import merged
from scheduler_app.queries import rows as queries
from scheduler_app.queries.merged import Parts
from scheduler_app.queries.rows import TaskNames

from .. import bodies, errors, pages, params
from ..endpoint import Endpoint
from . import assets, documents
from .dags import visible

_RANGES = (
    *params.bounds("run_after"),
    *params.bounds("logical_date"),
    *params.bounds("start_date"),
    *params.bounds("end_date"),
    *params.duration_bounds(),
    params.Param(
        "conf_contains", params.text, lambda rows, value: rows.filter(conf__icontains=value) if value else rows
    ),
)
FILTERS = (
    *_RANGES,
    *params.bounds("updated_at", "changed_at"),
    params.any_of("run_type", read=params.one_of(*RUN_TYPES)),
    params.Param(
        "state",
        params.one_of(*states.RUN_STATES),
        lambda rows, values: rows.filter(in_states(values)),
        many=True,
    ),
    params.any_of("dag_version", "dag_version__version_number", params.whole),
    params.exact("bundle_version"),
    *params.matching("run_id", "run_id"),
    *params.matching("triggering_user_name", "triggering_user_name"),
    *params.of_dags("dag_id", "dag"),
    *params.matching("partition_key", "partition_key"),
    params.Param(
        "consuming_asset_pattern",
        params.text,
        lambda rows, value: rows.filter(
            pk__in=DagRun.consumed_asset_events.rel.through.objects.filter(
                assetevent__asset__name__ilike=f"%{value}%"
            ).values("dagrun_id")
        ),
    ),
)
BATCH_FILTERS = (
    *_RANGES,
    params.any_of("dag_ids", "dag_id"),
    params.state_in("states", states.RUN_STATES),
)
ORDER = {
    "id": "pk",
    "state": "state",
    "dag_id": "dag_id",
    "run_id": "run_id",
    "dag_run_id": "run_id",
    "logical_date": "logical_date",
    "partition_date": "partition_key",
    "run_after": "run_after",
    "start_date": "start_date",
    "end_date": "end_date",
    "updated_at": "changed_at",
    "conf": "conf",
    "duration": "took",
}


def visible_run(actor: Actor, dag_id: str, run_id: str) -> DagRun:
    """A run that the actor may see; 404 otherwise."""
    run = queries.runs(access.runs(actor)).filter(dag_id=dag_id, run_id=run_id).first()
    if run is None:
        raise errors.Problem(404, f"The DagRun with dag_id: `{dag_id}` and run_id: `{run_id}` was not found")
    return run


def listing(
    key: str,
    rows: Any,
    query: QueryDict,
    order: dict[str, str],
    default: list[str],
    widen: Any,
    write: Any,
    parts: Parts | None = None,
) -> Response:
    """The answer of a list that knows both pages and cursors."""
    if "cursor" in query:
        found: Any = pages.by_cursor(rows, query, order, default, widen, parts)
    else:
        found = pages.page(pages.ordered(rows, query, order, default), query, widen, parts)
    return Response(
        {
            key: write(found.rows),
            "total_entries": found.total,
            "total_entries_limit": found.counted_to,
            "next_cursor": getattr(found, "next_cursor", None),
            "previous_cursor": getattr(found, "previous_cursor", None),
        }
    )


def _write(rows: list[DagRun]) -> list[dict[str, Any]]:
    return [documents.run(row) for row in rows]


class TriggerBody(bodies.Body):
    dag_run_id = bodies.Text(required=False, allow_null=True, max_length=250)
    logical_date = bodies.Moment(allow_null=True)
    data_interval_start = bodies.Moment(required=False, allow_null=True)
    data_interval_end = bodies.Moment(required=False, allow_null=True)
    run_after = bodies.Moment(required=False, allow_null=True)
    conf = bodies.Conf(required=False, allow_null=True)
    note = bodies.Text(required=False, allow_null=True, max_length=bodies.NOTE)
    partition_key = bodies.Text(required=False, allow_null=True, max_length=250)


class RunsView(Endpoint):
    kind = "run"

    def get(self, request: Request, dag_id: str) -> Response:
        rows = queries.timed_runs(access.runs(self.actor))
        if dag_id != "~":
            visible(self.actor, dag_id)
            rows = rows.filter(dag_id=dag_id)
        rows = params.narrow(rows, FILTERS, request.query_params)
        parts = merged.RUNS if dag_id == "~" else None
        return listing("dag_runs", rows, request.query_params, ORDER, ["id"], queries.runs, _write, parts)

    def post(self, request: Request, dag_id: str) -> Response:
        body = bodies.read(request, TriggerBody)
        run = trigger.trigger_run(
            self.actor,
            dag_id,
            self.now,
            run_id=body.get("dag_run_id") or None,
            logical_date=body["logical_date"],
            data_interval_start=body.get("data_interval_start"),
            data_interval_end=body.get("data_interval_end"),
            run_after=body.get("run_after"),
            conf=body.get("conf") or {},
            note=body.get("note"),
            partition_key=body.get("partition_key"),
            triggered_by="rest_api",
        )
        return Response(documents.run(visible_run(self.actor, dag_id, run.run_id)))


class RunPatchBody(bodies.Body):
    state = serializers.ChoiceField(["queued", "success", "failed"], required=False, allow_null=True)
    note = bodies.Text(required=False, allow_null=True, max_length=bodies.NOTE)


class RunView(Endpoint):
    kind = "run"

    def get(self, request: Request, dag_id: str, dag_run_id: str) -> Response:
        return Response(documents.run(visible_run(self.actor, dag_id, dag_run_id)))

    def patch(self, request: Request, dag_id: str, dag_run_id: str) -> Response:
        body = bodies.masked(bodies.read(request, RunPatchBody), request, {"state", "note"})
        visible_run(self.actor, dag_id, dag_run_id)
        if body.get("state") is not None:
            run_actions.mark_run(self.actor, dag_id, dag_run_id, body["state"], self.now)
        if "note" in body:
            notes.note_run(self.actor, dag_id, dag_run_id, body["note"], self.now)
        return Response(documents.run(visible_run(self.actor, dag_id, dag_run_id)))

    def delete(self, request: Request, dag_id: str, dag_run_id: str) -> Response:
        run_actions.delete_run(self.actor, dag_id, dag_run_id, self.now)
        return Response(status=204)


class RunClearBody(bodies.Body):
    dry_run = bodies.Flag(default=True)
    only_failed = bodies.Flag(default=False)
    only_new = bodies.Flag(default=False)
    run_on_latest_version = bodies.Flag(required=False, allow_null=True)
    note = bodies.Text(required=False, allow_null=True, max_length=bodies.NOTE)


class RunClearView(Endpoint):
    kind = "run"
    needs = {"POST": ("change", "run")}

    def post(self, request: Request, dag_id: str, dag_run_id: str) -> Response:
        body = bodies.read(request, RunClearBody)
        if body["only_new"] and body["only_failed"]:
            raise errors.not_valid("value_error", ["body"], "only_new and only_failed exclude each other")
        run = visible_run(self.actor, dag_id, dag_run_id)
        if body["dry_run"]:
            return Response(self._preview(run, body))
        run_actions.clear_run(
            self.actor,
            dag_id,
            dag_run_id,
            self.now,
            only_failed=body["only_failed"],
            only_new=body["only_new"],
            latest_version=bool(body.get("run_on_latest_version")),
            note=body.get("note"),
        )
        return Response(documents.run(visible_run(self.actor, dag_id, dag_run_id)))

    def _preview(self, run: DagRun, body: dict[str, Any]) -> dict[str, Any]:
        if body["only_new"]:
            names = TaskNames([run.dag.latest_version_id])
            fresh = [
                {"task_id": task_id, "task_display_name": names.display(run.dag.latest_version_id, task_id)}
                for task_id in run_actions.new_tasks(run)
            ]
            return {"task_instances": fresh, "total_entries": len(fresh)}
        wanted = selection.Wanted(run.dag_id, runs=[run.run_id], only_failed=body["only_failed"])
        return documents.task_instances_of(selection.picked(self.actor, wanted))


class RunsBatchBody(bodies.Body):
    """The filters of the list as a body; each is read again by the list's own table."""

    page_offset = serializers.IntegerField(default=0, min_value=0, max_value=2**31 - 1)
    page_limit = serializers.IntegerField(default=100, min_value=0, max_value=2**31 - 1)
    order_by = bodies.Text(required=False, allow_null=True)
    dag_ids = serializers.ListField(child=bodies.Text(), required=False, allow_null=True)
    states = serializers.ListField(child=bodies.Text(allow_null=True), required=False, allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        given = super().get_fields()
        return given | batch_fields(BATCH_FILTERS, given)


def batch_fields(table: tuple[params.Param, ...], given: dict[str, Any]) -> dict[str, Any]:
    """A loose field for every filter that the body does not declare itself."""
    return {
        param.name: serializers.JSONField(required=False, allow_null=True) for param in table if param.name not in given
    }


def as_query(body: dict[str, Any]) -> QueryDict:
    """A batch body as the query of the list that it stands for."""
    query = QueryDict(mutable=True)
    for name, value in body.items():
        if name in ("page_offset", "page_limit") or value is None:
            continue
        values = value if isinstance(value, list) else [value]
        query.setlist(name, ["none" if item is None else str(item) for item in values])
    query["offset"], query["limit"] = str(body["page_offset"]), str(body["page_limit"])
    return query


class RunsBatchView(Endpoint):
    kind = "run"
    needs = {"POST": ("view", "run")}

    def post(self, request: Request, dag_id: str) -> Response:
        if dag_id != "~":
            raise errors.not_valid("literal_error", ["path", "dag_id"], "Input should be '~'", dag_id)
        query = as_query(bodies.read(request, RunsBatchBody))
        rows = params.narrow(queries.timed_runs(access.runs(self.actor)), BATCH_FILTERS, query)
        return listing("dag_runs", rows, query, ORDER, ["id"], queries.runs, _write, merged.RUNS)


class UpstreamEventsView(Endpoint):
    """The asset events that a run was started for."""

    kind = "run"

    def get(self, request: Request, dag_id: str, dag_run_id: str) -> Response:
        run = visible_run(self.actor, dag_id, dag_run_id)
        events = access.asset_events(self.actor).filter(created_dagruns=run)
        rows = list(queries.asset_events(events.order_by("timestamp", "id")))
        return Response({"asset_events": [assets.event(row) for row in rows], "total_entries": len(rows)})


class WaitView(Endpoint):
    """One JSON line each interval until the run has ended; the last one carries the results that were asked for."""

    kind = "run"
    #: shortest and longest pause between two looks, seconds
    bounds = (0.1, 60.0)

    def get(self, request: Request, dag_id: str, dag_run_id: str) -> StreamingHttpResponse:
        interval = params.must_get(request.query_params, "interval", params.number)
        if interval <= 0:
            raise errors.not_valid("greater_than", ["query", "interval"], "Input should be greater than 0", interval)
        run = visible_run(self.actor, dag_id, dag_run_id)
        pause = min(max(interval, self.bounds[0]), self.bounds[1])
        if not _seats.acquire(blocking=False):
            raise errors.Problem(
                503, "Too many requests wait for runs already. Ask for the run itself from time to time."
            )
        lines = _Seated(_until_ended(run.pk, pause, request.query_params.getlist("result")))
        return StreamingHttpResponse(lines, content_type="application/x-ndjson")


#: Each wait keeps a thread of the web server; some must be left for everybody else.
_seats = threading.BoundedSemaphore(max(1, conf().web_threads // 2))


class _Seated(Iterator[str]):
    """Lines that give their seat back when they end, or when the client goes."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._left = False

    def __next__(self) -> str:
        try:
            return next(self._lines)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if not self._left:
            self._left = True
            _seats.release()


def _until_ended(run_key: int, pause: float, results: list[str]) -> Iterator[str]:
    while True:
        state = DagRun.objects.filter(pk=run_key).values_list("state", flat=True).first()
        ended = state is None or state in states.RUN_FINISHED
        answer: dict[str, Any] = {"state": state}
        if ended and results:
            answer["results"] = _results(run_key, results)
        yield json.dumps(answer) + "\n"
        if ended:
            return
        # The connection is not kept while nothing is asked of it.
        db.close()
        time.sleep(pause)


def _results(run_key: int, task_ids: list[str]) -> dict[str, Any]:
    rows = XCom.objects.filter(dag_run_id=run_key, task_id__in=task_ids, key="return_value").order_by("map_index")
    found: dict[str, Any] = {}
    for row in rows:
        value = wire.plain(row.value)
        if row.map_index < 0:
            found[row.task_id] = value
        else:
            found.setdefault(row.task_id, []).append(value)
    return found
