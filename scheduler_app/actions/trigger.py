"""Trigger a run of a DAG: by a person, by the API, by a task of another DAG."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime
from typing import Any, NamedTuple

from scheduler_app.access import Actor
from scheduler_app.engine import params, run_plans
from scheduler_app.engine.graph import Graph
from scheduler_app.models import DagModel, DagRun, DagVersion, Wake, db
from scheduler_app.models.creation import NewRun, create_runs

from . import definitions, journal, permit
from .errors import Conflict, Invalid, Refused

#: As Airflow's default: other signs break links, log folders and clients.
_RUN_ID = re.compile(r"[A-Za-z0-9_.~:+-]+\Z")
_LONGEST = 250
#: Ids that the scheduler makes itself: a person who takes tomorrow's would stop that run (BC-23).
_RESERVED = ("scheduled__", "backfill__", "asset_triggered__", "asset_materialization__", "dataset_triggered__")


class _Dates(NamedTuple):
    """Fields of :class:`NewRun`."""

    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    run_after: datetime
    interval_pending: bool = False


def trigger_run(
    actor: Actor,
    dag_id: str,
    now: datetime,
    *,
    run_id: str | None = None,
    logical_date: datetime | None = None,
    data_interval_start: datetime | None = None,
    data_interval_end: datetime | None = None,
    run_after: datetime | None = None,
    conf: dict[str, Any] | None = None,
    note: str | None = None,
    partition_key: str | None = None,
    triggered_by: str = "ui",
    run_type: str = "manual",
    reason: str | None = None,
) -> DagRun:
    """A new run, queued. The DAG's row is locked meanwhile, so that a logical date is taken once.

    Raises Missing, Forbidden; Refused (a run id that cannot be, params that break their schema, a DAG that does not
    load); Conflict (run id or logical date taken); Invalid (half a data interval, or one that ends before it starts).
    """
    permit.require(actor, "add", "run")
    with db.atomic():
        dag = permit.dag_to_change(actor, dag_id)
        version, graph = _version(dag)
        _check_params(graph, conf or {})
        dates = _dates(dag, now, logical_date, data_interval_start, data_interval_end, run_after)
        run_id = _made_up_id(run_type, dates) if run_id is None else _checked_id(run_id, run_type)
        _check_free(dag_id, run_id, logical_date)
        run = _insert(
            NewRun(
                dag_id=dag_id,
                run_id=run_id,
                run_type=run_type,
                version_id=version.pk,
                graph=graph,
                conf=conf or {},
                triggered_by=triggered_by,
                triggering_user_name=actor.name if actor.kind == "person" else None,
                note=note or None,
                note_by=actor.name if note else None,
                bundle_version=version.bundle_version,
                partition_key=partition_key,
                **dates._asdict(),
            ),
            now,
        )
        after = {"state": run.state, "conf_keys": sorted(conf or {})}
        journal.record(actor, "trigger_dag_run", now, run=run, reason=reason, after=after)
    return run


def _version(dag: DagModel) -> tuple[DagVersion, Graph]:
    if dag.has_import_errors:
        raise Refused(
            f"DAG with dag_id: `{dag.dag_id}` has import errors and cannot be triggered. Mend its file first."
        )
    if dag.is_stale or dag.latest_version_id is None:
        raise Refused(f"No DAG file defines `{dag.dag_id}` any more, so it cannot be triggered.")
    version = DagVersion.objects.defer("document").get(pk=dag.latest_version_id)
    return version, definitions.needed(version.pk)


def _check_params(graph: Graph, conf: dict[str, Any]) -> None:
    wrong = params.resolve(graph.dag.params, conf).errors
    if wrong:
        raise Refused(" ".join(wrong.values()))


def _made_up_id(run_type: str, dates: _Dates) -> str:
    """Some random letters keep the ids of two runs without a logical date apart."""
    due = dates.logical_date or dates.run_after
    return run_plans.run_id(run_type, run_after=due, logical_date=dates.logical_date, token=secrets.token_hex(4))


def _checked_id(run_id: str, run_type: str) -> str:
    if len(run_id) > _LONGEST:
        raise Refused(f"The run id has {len(run_id)} signs; at most {_LONGEST} are possible.")
    if not _RUN_ID.match(run_id):
        raise Refused(f"The run id {run_id!r} may hold letters, digits and _ . ~ : + - only.")
    for prefix in _RESERVED:
        if run_id.startswith(prefix) and prefix != f"{run_type}__":
            raise Refused(
                f"A {run_type} run cannot be called {run_id!r}: ids that begin with {prefix!r} are the scheduler's own."
            )
    return run_id


def _check_free(dag_id: str, run_id: str, logical_date: datetime | None) -> None:
    runs = DagRun.objects.filter(dag_id=dag_id)
    if runs.filter(run_id=run_id).exists():
        raise Conflict(f"DAG Run already exists: dag_id `{dag_id}`, run_id `{run_id}`")
    if logical_date is not None and runs.filter(logical_date=logical_date).exists():
        raise Conflict(f"DAG Run already exists: dag_id `{dag_id}`, logical_date `{logical_date.isoformat()}`")


def _dates(
    dag: DagModel,
    now: datetime,
    logical_date: datetime | None,
    start: datetime | None,
    end: datetime | None,
    run_after: datetime | None,
) -> _Dates:
    if (start is None) != (end is None):
        raise Invalid("data_interval_start", "Give both data_interval_start and data_interval_end, or neither.")
    if start is not None and end is not None and end < start:
        raise Invalid("data_interval_end", "The data interval ends before it starts.")
    due = run_after or now
    if start is not None or logical_date is None:
        return _Dates(logical_date, start, end, due)
    interval = run_plans.manual_interval(
        definitions.timetable(dag), logical_date=logical_date.astimezone(UTC), run_after=due
    )
    if interval is None:
        return _Dates(logical_date, None, None, due, interval_pending=True)
    return _Dates(logical_date, interval.start, interval.end, due)


def _insert(new: NewRun, now: datetime) -> DagRun:
    (key,) = create_runs([new], now)
    if key is None:
        raise Conflict(f"DAG Run already exists: dag_id `{new.dag_id}`, run_id `{new.run_id}`")
    Wake.objects.add([key], "run_created", now)
    db.notify()
    return DagRun.objects.get(pk=key)
