"""DAGs: list, one, details, pause, delete; and their tags, versions, sources, statistics, warnings, files."""

from __future__ import annotations

from typing import Any

from django.core.signing import BadSignature
from django.db.models import Exists, OuterRef, Q
from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access, wire
from scheduler_app.access import Actor
from scheduler_app.actions import dags as dag_actions
from scheduler_app.actions import favourites, pause
from scheduler_app.engine import states
from scheduler_app.models import AssetUse, DagModel, DagTag, DagVersion, Favourite, SourceBlob
from scheduler_app.queries import rows as queries

from .. import bodies, errors, pages, params
from ..endpoint import Endpoint, asks_for, null
from ..render import iso_duration, read_file_token, stamp
from . import documents


def visible(actor: Actor, dag_id: str) -> DagModel:
    """A DAG that the actor may see; 404 otherwise."""
    dag = queries.dags(access.dags(actor)).filter(pk=dag_id).first()
    if dag is None:
        raise errors.Problem(404, f"The DAG with ID: `{dag_id}` was not found")
    return dag


def _by_owner(rows: Any, owners: list[str]) -> Any:
    scope = Q()
    for owner in owners:
        scope |= Q(owners__icontains=owner)
    return rows.filter(scope)


def _by_asset(rows: Any, value: str) -> Any:
    uses = AssetUse.objects.filter(dag=OuterRef("pk"), kind="schedule").filter(
        Q(asset__name__icontains=value) | Q(asset__uri__icontains=value)
    )
    return rows.filter(Exists(uses))


def _asset_scheduled(rows: Any, value: bool) -> Any:
    kinds = Q(timetable__kind__in=["asset", "asset_or_time"])
    return rows.filter(kinds) if value else rows.exclude(kinds)


BASIC_FILTERS = (
    params.Param("owners", params.text, _by_owner, many=True),
    *params.matching("dag_id", "dag_id"),
    params.exact("paused", "is_paused", params.flag),
)
FILTERS = (
    *BASIC_FILTERS,
    *params.matching("dag_display_name", "dag_display_name"),
    params.exact("has_import_errors", read=params.flag),
    params.exact("last_dag_run_state", "last_run_state", params.one_of(*states.RUN_STATES)),
    params.exact("bundle_name"),
    params.exact("bundle_version"),
    params.Param("has_asset_schedule", params.flag, _asset_scheduled),
    params.Param("asset_dependency", params.text, _by_asset),
    *params.bounds("dag_run_start_date", "last_run_start"),
    *params.bounds("dag_run_end_date", "last_run_end"),
    params.any_of("dag_run_state", "last_run_state", params.one_of(*states.RUN_STATES)),
    params.any_of("timetable_type", "timetable__kind"),
)
ORDER = {
    "dag_id": "dag_id",
    "dag_display_name": "dag_display_name",
    "next_dagrun": "next_dagrun_run_after",
    "state": "is_paused",
    "start_date": "last_run_start",
    "last_run_state": "last_run_state",
    "last_run_start_date": "last_run_start",
}


def _listed(actor: Actor, request: Request, table: tuple[params.Param, ...], verb: str = "view") -> Any:
    query = request.query_params
    rows = queries.with_latest_run(access.dags(actor, verb))
    if params.get(query, "exclude_stale", params.flag, True):
        rows = rows.active()  # type: ignore[attr-defined]
    wanted = params.get(query, "is_favorite", params.flag)
    if wanted is not None:
        own = Exists(Favourite.objects.of(actor.user_id).filter(dag=OuterRef("pk")))
        rows = rows.filter(own if wanted else ~own)
    mode = params.get(query, "tags_match_mode", params.one_of("any", "all"), "any")
    tags = query.getlist("tags")
    if tags and mode == "any":
        rows = rows.filter(Exists(DagTag.objects.filter(dag=OuterRef("pk"), name__in=tags)))
    elif tags:
        for tag in set(tags):
            rows = rows.filter(Exists(DagTag.objects.filter(dag=OuterRef("pk"), name=tag)))
    return params.narrow(rows, table, query)


class DagPatchBody(bodies.Body):
    is_paused = bodies.Flag()


class DagsView(Endpoint):
    kind = "dag"

    def get(self, request: Request) -> Response:
        rows = pages.ordered(_listed(self.actor, request, FILTERS), request.query_params, ORDER, ["dag_id"])
        # The latest run of a DAG is looked up for the rows of the page, not for those that an offset passes.
        found = pages.page(rows, request.query_params, lambda keys: queries.with_latest_run(queries.dags(keys)))
        return Response({"dags": [documents.dag(row) for row in found.rows], "total_entries": found.total})

    def patch(self, request: Request) -> Response:
        """Pauses or unpauses every DAG of one page of the list."""
        body = bodies.masked(bodies.read(request, DagPatchBody), request, {"is_paused"})
        rows = _listed(self.actor, request, BASIC_FILTERS, "change").order_by("dag_id")
        found = pages.page(rows, request.query_params)
        ids = [row.dag_id for row in found.rows]
        if "is_paused" in body:
            pause.set_paused_many(self.actor, ids, body["is_paused"], self.now)
        changed = queries.dags(access.dags(self.actor)).filter(pk__in=ids).order_by("dag_id")
        return Response({"dags": [documents.dag(row) for row in changed], "total_entries": found.total})


class DagView(Endpoint):
    kind = "dag"

    def get(self, request: Request, dag_id: str) -> Response:
        return Response(documents.dag(visible(self.actor, dag_id)))

    def patch(self, request: Request, dag_id: str) -> Response:
        body = bodies.masked(bodies.read(request, DagPatchBody), request, {"is_paused"})
        if "is_paused" in body:
            pause.set_paused(self.actor, dag_id, body["is_paused"], self.now)
        return Response(documents.dag(visible(self.actor, dag_id)))

    def delete(self, request: Request, dag_id: str) -> Response:
        dag_actions.delete_dag(self.actor, dag_id, self.now)
        return Response({"message": f"Deleted DAG {dag_id}"})


class FavouriteView(Endpoint):
    """The DAG becomes one of the caller's favourites, or with ``keep=False`` no longer is."""

    kind = "dag"
    needs = {"POST": ("view", "dag")}
    keep = True

    def post(self, request: Request, dag_id: str) -> Response:
        (favourites.add if self.keep else favourites.remove)(self.actor, dag_id, self.now)
        return Response(status=204)


class DagDetailsView(Endpoint):
    kind = "dag"

    def get(self, request: Request, dag_id: str) -> Response:
        row = visible(self.actor, dag_id)
        newest = DagVersion.objects.filter(pk=row.latest_version_id).first() if row.latest_version_id else None
        doc: dict[str, Any] = newest.document if newest else {}
        active = row.runs.filter(state__in=[states.QUEUED, states.RUNNING]).count()
        return Response(
            documents.dag(row)
            | _details(row, doc)
            | {
                "active_runs_count": active,
                "is_favorite": Favourite.objects.of(self.actor.user_id).filter(dag=row).exists(),
                "latest_dag_version": documents.version(newest, row.dag_display_name or row.dag_id) if newest else None,
            }
        )


def _details(row: DagModel, doc: dict[str, Any]) -> dict[str, Any]:
    return {
        "catchup": row.catchup,
        "dag_run_timeout": iso_duration(doc.get("dagrun_timeout")),
        "asset_expression": row.timetable.get("condition"),
        "doc_md": doc.get("doc_md"),
        "start_date": stamp(row.start_date),
        "end_date": stamp(row.end_date),
        "is_paused_upon_creation": doc.get("is_paused_upon_creation"),
        "params": {name: _param(value) for name, value in doc.get("params", {}).items()},
        "render_template_as_native_obj": bool(doc.get("render_template_as_native_obj", False)),
        "template_search_path": doc.get("template_search_path"),
        "timezone": row.timezone,
        "last_parsed": stamp(row.last_parsed_time),
        "default_args": wire.plain(doc.get("default_args", {})),
        "rerun_with_latest_version": None,
        "owner_links": doc.get("owner_links", {}),
        "concurrency": row.max_active_tasks,
    }


def _param(value: Any) -> dict[str, Any]:
    return {
        "value": wire.plain(value.get("value")),
        "schema": value.get("schema", {}),
        "description": value.get("description"),
    }


class DagTagsView(Endpoint):
    kind = "dag"

    def get(self, request: Request) -> Response:
        tags = DagTag.objects.filter(dag__in=access.dags(self.actor)).values_list("name", flat=True).distinct()
        tags = params.narrow(tags, params.matching("tag_name", "name"), request.query_params)
        names = request.query_params.getlist("order_by") or ["name"]
        if set(names) - {"name", "-name"}:
            raise errors.Problem(400, f"Ordering with '{names[0]}' is not possible. Use one of: name.")
        limit, offset = pages.window(request.query_params)
        found = pages.cut(tags.order_by(names[0]), limit, offset)
        return Response({"tags": found.rows, "total_entries": found.total})


class DagVersionsView(Endpoint):
    kind = "dag_version"
    filters = (
        params.exact("version_number", read=params.whole),
        params.exact("bundle_name"),
        params.exact("bundle_version"),
    )
    order = {name: name for name in ("id", "version_number", "bundle_name", "bundle_version", "dag_id", "created_at")}

    def get(self, request: Request, dag_id: str) -> Response:
        rows = access.versions(self.actor).select_related("dag").defer("document", "dag__timetable")
        if dag_id != "~":
            visible(self.actor, dag_id)
            rows = rows.filter(dag_id=dag_id)
        rows = params.narrow(rows, self.filters, request.query_params)
        order = {**self.order, "id": "created_at"}
        found = pages.page(pages.ordered(rows, request.query_params, order, ["id"]), request.query_params)
        answer = [documents.version(row, row.dag.dag_display_name or row.dag_id) for row in found.rows]
        return Response({"dag_versions": answer, "total_entries": found.total})


class DagVersionView(Endpoint):
    kind = "dag_version"

    def get(self, request: Request, dag_id: str, version_number: str) -> Response:
        number = params.in_path(version_number, "version_number")
        rows = access.versions(self.actor).select_related("dag").defer("document")
        row = rows.filter(dag_id=dag_id, version_number=number).first()
        if row is None:
            raise errors.Problem(
                404, f"The DagVersion with dag_id: `{dag_id}` and version_number: `{version_number}` was not found"
            )
        return Response(documents.version(row, row.dag.dag_display_name or row.dag_id))


class DagSourceView(Endpoint):
    kind = "dag_version"

    def get(self, request: Request, dag_id: str) -> Response | HttpResponse:
        dag = visible(self.actor, dag_id)
        wanted = params.get(request.query_params, "version_number", params.whole)
        rows = DagVersion.objects.filter(dag=dag).defer("document")
        row = (
            rows.filter(version_number=wanted).first()
            if wanted is not None
            else rows.order_by("-version_number").first()
        )
        blob = SourceBlob.objects.filter(pk=row.source_sha256).first() if row else None
        if row is None or blob is None:
            raise errors.Problem(404, f"Code not found: no source is stored for the DAG `{dag_id}`")
        text = bytes(blob.content).decode("utf-8", "replace")
        if asks_for(request, "text/plain"):
            return HttpResponse(text, content_type="text/plain; charset=utf-8")
        return Response(
            {
                "content": text,
                "dag_id": dag_id,
                "version_number": row.version_number,
                "dag_display_name": dag.dag_display_name or dag_id,
            }
        )


class DagStatsView(Endpoint):
    kind = "run"

    def get(self, request: Request) -> Response:
        rows = access.dags(self.actor)
        if wanted := request.query_params.getlist("dag_ids"):
            rows = rows.filter(pk__in=wanted)
        counts = queries.run_counts(rows)
        answer = [
            {
                "dag_id": row.dag_id,
                "dag_display_name": row.dag_display_name or row.dag_id,
                "stats": [
                    {"state": state, "count": counts.get(row.dag_id, {}).get(state, 0)} for state in states.RUN_STATES
                ],
            }
            for row in rows.only("dag_id", "dag_display_name").order_by("dag_id")
        ]
        return Response({"dags": answer, "total_entries": len(answer)})


class DagWarningsView(Endpoint):
    kind = "warning"
    #: what Airflow's clients know
    types = ("asset conflict", "non-existent pool", "runtime varying value")
    filters = (params.exact("dag_id"), params.exact("warning_type", read=params.one_of(*types)))
    order = {name: name for name in ("dag_id", "warning_type", "message", "timestamp")}

    def get(self, request: Request) -> Response:
        rows = access.warnings(self.actor).select_related("dag").filter(warning_type__in=self.types)
        rows = params.narrow(rows, self.filters, request.query_params)
        found = pages.page(pages.ordered(rows, request.query_params, self.order, ["dag_id"]), request.query_params)
        answer = [
            {
                "dag_id": row.dag_id,
                "warning_type": row.warning_type,
                "message": row.message,
                "timestamp": stamp(row.timestamp),
                "dag_display_name": row.dag.dag_display_name or row.dag_id,
            }
            for row in found.rows
        ]
        return Response({"dag_warnings": answer, "total_entries": found.total})


class ParseDagFileView(Endpoint):
    kind = "dag"

    def put(self, request: Request, file_token: str) -> HttpResponse:
        try:
            bundle, path = read_file_token(file_token)
        except (BadSignature, ValueError, TypeError) as error:
            raise errors.Problem(404, "File not found: the file token is not one of this server.") from error
        dag = access.dags(self.actor, "change").filter(bundle_name=bundle, relative_fileloc=path).first()
        if dag is None:
            raise errors.Problem(404, f"File not found: no DAG that you may change is defined in {path}.")
        dag_actions.parse_now(self.actor, dag, self.now)
        return null(201)
