"""What a running attempt may ask (docs/borders.md §3): a table from the request's op to the function that answers it.

Each reads the database shortly, in the runner's own loop. A function that refuses raises :class:`Refusal`, whose kind
is the error's name on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from scheduler_app import access, wire
from scheduler_app.actions import runs, trigger, variables
from scheduler_app.actions.errors import Conflict, Invalid, Missing, Refused
from scheduler_app.models import (
    Asset,
    AssetEvent,
    DagModel,
    DagRun,
    TaskInstance,
    Variable,
    XCom,
    db,
)
from scheduler_app.models.graphs import graph_of
from scheduler_app.runner import state_answers
from scheduler_app.runner.buffers import DELETED, Buffer
from scheduler_app.runner.claims import Claim, iso
from scheduler_app.runner.refusal import Refusal as Refusal
from scheduler_app.supervisor import readings

#: Rows that one answer gives at most.
_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks, what, and when."""

    claim: Claim
    buffer: Buffer
    request: Mapping[str, Any]
    now: datetime

    def __getitem__(self, name: str) -> Any:
        return self.request.get(name)

    @property
    def actor(self) -> access.Actor:
        return access.system("task", f"{self.claim.dag_id}.{self.claim.task_id}")

    def date(self, name: str) -> datetime | None:
        value = self.request.get(name)
        return datetime.fromisoformat(value) if value else None


def answer(claim: Claim, buffer: Buffer, request: Mapping[str, Any], now: datetime) -> Any:
    """The JSON answer to one request. Raises Refusal, and whatever the database raises."""
    op = request.get("op", "")
    if op not in ANSWERS:
        raise Refusal("UnknownRequest", f"This scheduler does not know the request {op!r}.")
    return ANSWERS[op](Asking(claim, buffer, request, now))


# Variables and connections


def _get_variable(ask: Asking) -> Any:
    return readings.get_variable(ask["key"])


def _set_variable(ask: Asking) -> None:
    if Variable.objects.filter(key=ask["key"]).exists():
        fields = {"value": ask["value"]}
        if ask["description"] is not None:
            fields["description"] = ask["description"]
        variables.change(ask.actor, ask["key"], ask.now, **fields)
    else:
        variables.create(ask.actor, ask["key"], ask["value"], ask.now, description=ask["description"])


def _delete_variable(ask: Asking) -> None:
    if Variable.objects.filter(key=ask["key"]).exists():
        variables.delete(ask.actor, ask["key"], ask.now)


def _get_connection(ask: Asking) -> Any:
    return readings.get_connection(ask["conn_id"])


# XComs


def _is_own(ask: Asking) -> bool:
    claim = ask.claim
    return (ask["dag_id"], ask["run_id"], ask["task_id"]) == (claim.dag_id, claim.run_id, claim.task_id)


def _get_xcom(ask: Asking) -> Any:
    if _is_own(ask) and ask["map_index"] == ask.claim.map_index and ask["key"] in ask.buffer.xcoms:
        value = ask.buffer.xcoms[ask["key"]]
        return {"found": False, "value": None} if value is DELETED else {"found": True, "value": value}
    rows = XCom.objects.filter(dag_id=ask["dag_id"], task_id=ask["task_id"], map_index=ask["map_index"], key=ask["key"])
    if ask["include_prior_dates"]:
        logical_date = DagRun.objects.filter(dag_id=ask["dag_id"], run_id=ask["run_id"]).values("logical_date")[:1]
        rows = rows.filter(dag_run__logical_date__lte=logical_date).order_by("-dag_run__logical_date", "-id")
    else:
        rows = rows.filter(dag_run__run_id=ask["run_id"], dag_run__dag_id=ask["dag_id"])
    found = list(rows.values_list("value", flat=True)[:1])
    return {"found": bool(found), "value": found[0] if found else None}


def _get_xcoms(ask: Asking) -> Any:
    rows = XCom.objects.filter(
        dag_run__run_id=ask["run_id"], dag_run__dag_id=ask["dag_id"], task_id=ask["task_id"], key=ask["key"]
    )
    if ask["map_indexes"] is not None:
        rows = rows.filter(map_index__in=ask["map_indexes"])
    return [[map_index, value] for map_index, value in rows.order_by("map_index").values_list("map_index", "value")]


# Runs and task instances


def _trigger_dag_run(ask: Asking) -> Any:
    conf = wire.plain(ask["conf"]) or {}
    try:
        run = trigger.trigger_run(
            ask.actor,
            ask["dag_id"],
            ask.now,
            run_id=ask["run_id"],
            logical_date=ask.date("logical_date"),
            run_after=ask.date("run_after"),
            conf=conf,
            note=ask["note"],
            triggered_by="operator",
            run_type="operator_triggered",
        )
    except Missing as error:
        raise Refusal("DagNotFound", str(error)) from error
    except (Refused, Invalid) as error:
        raise Refusal("ParamValidation", str(error)) from error
    except Conflict as error:
        return {"run_id": _run_again(ask, error), "created": False}
    db.notify()
    return {"run_id": run.run_id, "created": True}


def _run_again(ask: Asking, conflict: Conflict) -> str:
    """With ``reset`` the run that is there is cleared instead; it may have another id on the same logical date."""
    there = Q(run_id=ask["run_id"])
    if ask["logical_date"]:
        there |= Q(logical_date=ask.date("logical_date"))
    run_id = DagRun.objects.filter(there, dag_id=ask["dag_id"]).values_list("run_id", flat=True).first()
    if not ask["reset"] or run_id is None:
        raise Refusal("DagRunAlreadyExists", str(conflict)) from conflict
    runs.clear_run(ask.actor, ask["dag_id"], run_id, ask.now)
    return run_id


def _get_dag_run_state(ask: Asking) -> Any:
    return DagRun.objects.filter(dag_id=ask["dag_id"], run_id=ask["run_id"]).values_list("state", flat=True).first()


def _runs(ask: Asking) -> QuerySet[DagRun]:
    rows = DagRun.objects.filter(dag_id=ask["dag_id"])
    if ask["logical_dates"] is not None:
        rows = rows.filter(logical_date__in=[datetime.fromisoformat(text) for text in ask["logical_dates"]])
    if ask["run_ids"] is not None:
        rows = rows.filter(run_id__in=ask["run_ids"])
    return rows


def _get_dr_count(ask: Asking) -> int:
    rows = _runs(ask)
    return (rows if ask["states"] is None else rows.filter(state__in=ask["states"])).count()


def _task_instances(ask: Asking) -> QuerySet[TaskInstance]:
    rows = TaskInstance.objects.filter(dag_run__in=_runs(ask))
    if ask["task_ids"] is not None:
        rows = rows.filter(task_id__in=ask["task_ids"])
    if ask["task_group_id"] is not None:
        rows = rows.filter(task_id__in=_tasks_of_group(ask["dag_id"], ask["task_group_id"]))
    if ask["map_index"] is not None:
        rows = rows.filter(map_index=ask["map_index"])
    return rows


def _tasks_of_group(dag_id: str, group_id: str) -> list[str]:
    version_id = DagModel.objects.filter(pk=dag_id).values_list("latest_version_id", flat=True).first()
    if version_id is None:
        raise Refusal("DagNotFound", f"The DAG {dag_id!r} does not exist.")
    groups = graph_of(version_id).groups
    if group_id not in groups:
        raise Refusal("TaskGroupNotFound", f"The DAG {dag_id!r} has no task group {group_id!r}.")
    found: list[str] = []
    open_groups = [group_id]
    while open_groups:
        for child in groups[open_groups.pop()].children:
            if "task" in child:
                found.append(child["task"])
            else:
                open_groups.append(child["group"])
    return found


def _get_ti_count(ask: Asking) -> int:
    rows = _task_instances(ask)
    if ask["states"] is not None:
        wanted = Q(state__in=[state for state in ask["states"] if state is not None])
        rows = rows.filter(wanted | Q(state__isnull=True) if None in ask["states"] else wanted)
    return rows.count()


def _get_task_states(ask: Asking) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    columns = ("dag_run__run_id", "task_id", "map_index", "state")
    for run_id, task_id, map_index, state in _task_instances(ask).order_by("id").values_list(*columns)[:_LIMIT]:
        key = task_id if map_index < 0 else f"{task_id}_{map_index}"
        found.setdefault(run_id, {})[key] = state
    return found


def _get_previous_run(ask: Asking) -> Any:
    rows = DagRun.objects.filter(dag_id=ask["dag_id"], logical_date__lt=ask.date("logical_date"))
    if ask["state"] is not None:
        rows = rows.filter(state=ask["state"])
    run = rows.order_by("-logical_date").first()
    return None if run is None else run_document(run)


def _get_previous_ti(ask: Asking) -> Any:
    rows = TaskInstance.objects.filter(
        dag_run__dag_id=ask["dag_id"], task_id=ask["task_id"], map_index=ask["map_index"]
    ).exclude(dag_run_id=ask.claim.run_pk)
    before = ask.date("logical_date")
    if before is not None:
        rows = rows.filter(dag_run__logical_date__lt=before)
    if ask["state"] is not None:
        rows = rows.filter(state=ask["state"])
    row = rows.select_related("dag_run").order_by("-dag_run__logical_date", "-id").first()
    if row is None:
        return None
    return {
        "dag_id": row.dag_id,
        "run_id": row.dag_run.run_id,
        "task_id": row.task_id,
        "map_index": row.map_index,
        "logical_date": iso(row.dag_run.logical_date),
        "state": row.state,
        "try_number": row.try_number,
        "start_date": iso(row.start_date),
        "end_date": iso(row.end_date),
        "duration": (row.end_date - row.start_date).total_seconds() if row.end_date and row.start_date else None,
    }


def run_document(run: DagRun) -> dict[str, Any]:
    """A run as ``start`` describes it, without the events that it consumed."""
    return {
        "dag_id": run.dag_id,
        "run_id": run.run_id,
        "run_type": run.run_type,
        "logical_date": iso(run.logical_date),
        "data_interval_start": iso(run.data_interval_start),
        "data_interval_end": iso(run.data_interval_end),
        "run_after": iso(run.run_after),
        "start_date": iso(run.start_date),
        "end_date": iso(run.end_date),
        "queued_at": iso(run.queued_at),
        "conf": run.conf,
        "state": run.state,
        "note": run.note,
        "triggering_user_name": run.triggering_user_name,
        "clear_number": run.clear_number,
        "partition_key": run.partition_key,
    }


def _get_dag_document(ask: Asking) -> Any:
    row = DagModel.objects.filter(pk=ask["dag_id"]).values_list("latest_version__document", "is_paused").first()
    return None if row is None or row[0] is None else {**row[0], "is_paused": row[1]}


# Assets


def _get_asset(ask: Asking) -> Any:
    rows = Asset.objects.filter(is_active=True)
    rows = rows.filter(name=ask["name"]) if ask["name"] else rows.filter(uri=ask["uri"])
    row = rows.first()
    return None if row is None else _asset_document(row)


def _asset_document(row: Asset) -> dict[str, Any]:
    return {"name": row.name, "uri": row.uri, "group": row.group, "extra": row.extra}


def _get_asset_events(ask: Asking) -> list[Any]:
    rows = AssetEvent.objects.all()
    if ask["name"]:
        rows = rows.filter(asset__name=ask["name"])
    if ask["uri"]:
        rows = rows.filter(asset__uri=ask["uri"])
    return _events(ask, rows)


def _get_asset_alias_events(ask: Asking) -> list[Any]:
    name = ask["alias_name"] or ask["name"]
    return _events(ask, AssetEvent.objects.filter(source_aliases__contains=[name]))


def _events(ask: Asking, rows: QuerySet[AssetEvent]) -> list[Any]:
    if ask["after"]:
        rows = rows.filter(timestamp__gte=ask.date("after"))
    if ask["before"]:
        rows = rows.filter(timestamp__lte=ask.date("before"))
    if ask["partition_key"]:
        rows = rows.filter(partition_key=ask["partition_key"])
    ascending = ask["ascending"] is not False
    order = ("timestamp", "id") if ascending else ("-timestamp", "-id")
    limit = min(ask["limit"] or _LIMIT, _LIMIT)
    return [_event_document(row) for row in rows.select_related("asset").order_by(*order)[:limit]]


def _event_document(row: AssetEvent) -> dict[str, Any]:
    return {
        "id": row.pk,
        "asset": _asset_document(row.asset),
        "extra": row.extra,
        "timestamp": iso(row.timestamp),
        "source_dag_id": row.source_dag_id,
        "source_task_id": row.source_task_id,
        "source_run_id": row.source_run_id,
        "source_map_index": row.source_map_index,
        "source_aliases": row.source_aliases,
        "partition_key": row.partition_key,
    }


ANSWERS: dict[str, Callable[[Asking], Any]] = {
    "get_variable": _get_variable,
    "set_variable": _set_variable,
    "delete_variable": _delete_variable,
    "get_connection": _get_connection,
    "get_xcom": _get_xcom,
    "get_xcoms": _get_xcoms,
    "trigger_dag_run": _trigger_dag_run,
    "get_dag_run_state": _get_dag_run_state,
    "get_dr_count": _get_dr_count,
    "get_ti_count": _get_ti_count,
    "get_task_states": _get_task_states,
    "get_previous_run": _get_previous_run,
    "get_previous_ti": _get_previous_ti,
    "get_dag_document": _get_dag_document,
    "get_asset": _get_asset,
    "get_asset_events": _get_asset_events,
    "get_asset_alias_events": _get_asset_alias_events,
    "get_state": state_answers.get_state,
    "set_state": state_answers.set_state,
    "delete_state": state_answers.delete_state,
}
