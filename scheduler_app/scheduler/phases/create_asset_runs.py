"""Creates the runs of DAGs whose asset condition is fulfilled by queued events: exactly one for the events it takes.

The DAG's row is locked before its queued events are read, and the run, its links to the events and the deletion of
the queued rows are one transaction: two schedulers cannot use the same events twice (BC-103). DAGs that wait for
partitions get theirs first, in ``scheduler.partition_runs``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from scheduler_app import metrics
from scheduler_app.engine.assets import AssetKey, aliases_of, satisfied
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.run_plans import run_id
from scheduler_app.models import AssetAlias, AssetEvent, AssetQueuedEvent, DagModel, creation, db, graphs
from scheduler_app.models.creation import NewRun
from scheduler_app.scheduler import partition_runs
from scheduler_app.scheduler.phases.create_runs import absolve, blame, graph_of
from scheduler_app.scheduler.tick import Tick
from scheduler_app.timetables import from_doc

__all__ = ["blame", "run"]

#: DAGs that are taken together.
DAGS = 100

_TAKE = """
SELECT d.dag_id FROM scheduler_dag d
WHERE d.dag_id > %(after)s AND d.dag_id IN (SELECT DISTINCT dag_id FROM scheduler_asset_queued_event)
  AND NOT d.is_paused AND NOT d.is_stale AND (d.held_at IS NULL OR d.held_until <= %(now)s)
  AND (d.backoff_until IS NULL OR d.backoff_until <= %(now)s)
ORDER BY d.dag_id LIMIT %(limit)s FOR NO KEY UPDATE OF d SKIP LOCKED
"""


class _Queued(NamedTuple):
    id: int
    asset: AssetKey
    event_id: int
    created_at: datetime


def run(tick: Tick) -> int:
    """Goes on to the last DAG: those that wait for more events for good reason hide none behind them (BC-133)."""
    page = min(tick.limit, DAGS)
    created, after = 0, ""
    while True:
        dag_ids = [row[0] for row in db.fetch(_TAKE, {"now": tick.now, "after": after, "limit": page})]
        if dag_ids:
            tick.working_on = dag_ids
            created += partition_runs.create(dag_ids, tick)
            created += _create_for(dag_ids, tick)
        if len(dag_ids) < page:
            return created
        after = dag_ids[-1]


def _create_for(dag_ids: list[str], tick: Tick) -> int:
    """Each DAG is decided on by itself; one that raises keeps its error, the others go on (I5)."""
    dags = DagModel.objects.in_bulk(dag_ids)
    queued = _queued_events(dag_ids)
    failed: dict[str, Exception] = {}
    conditions: dict[str, Any] = {}
    for dag_id in dag_ids:
        try:
            conditions[dag_id] = from_doc(dags[dag_id].timetable).asset_condition
        except Exception as error:
            failed[dag_id] = error
    aliases = _aliases(conditions.values())
    compiled, unreadable = graphs.readable(
        d.latest_version_id for d in dags.values() if d.latest_version_id is not None
    )
    new: list[NewRun] = []
    for dag_id, condition in conditions.items():
        try:
            if condition is not None and satisfied(condition, {event.asset for event in queued[dag_id]}, aliases):
                graph = graph_of(dags[dag_id], compiled, unreadable)
                new.append(_new_run(dags[dag_id], max(event.created_at for event in queued[dag_id]), graph, tick))
        except Exception as error:
            failed[dag_id] = error
    created = _create(new, queued, tick)
    for dag_id, error in failed.items():
        blame(tick, dag_id, error)
    decided = [dags[dag_id] for dag_id, condition in conditions.items() if condition and dag_id not in failed]
    absolve(decided, tick.now)
    return created + len(failed)


def _queued_events(dag_ids: Iterable[str]) -> dict[str, list[_Queued]]:
    found: dict[str, list[_Queued]] = defaultdict(list)
    rows = AssetQueuedEvent.objects.filter(dag_id__in=list(dag_ids)).order_by("id")
    for dag_id, key, name, uri, event_id, created_at in rows.values_list(
        "dag_id", "id", "asset__name", "asset__uri", "event_id", "created_at"
    ):
        found[dag_id].append(_Queued(key, AssetKey(name, uri), event_id, created_at))
    return found


def _aliases(conditions: Iterable[object]) -> dict[str, set[AssetKey]]:
    names = {name for condition in conditions if condition for name in aliases_of(condition)}  # type: ignore[arg-type]
    found: dict[str, set[AssetKey]] = defaultdict(set)
    if names:
        pairs = AssetAlias.objects.filter(name__in=names, assets__isnull=False)
        for name, asset, uri in pairs.values_list("name", "assets__name", "assets__uri"):
            found[name].add(AssetKey(asset, uri))
    return found


def _new_run(dag: DagModel, run_after: datetime, graph: Graph, tick: Tick) -> NewRun:
    token = "".join(tick.rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=8))
    return NewRun(
        dag_id=dag.dag_id,
        run_id=run_id("asset_triggered", run_after=run_after, logical_date=None, token=token),
        run_type="asset_triggered",
        run_after=run_after,
        version_id=dag.latest_version_id,  # type: ignore[arg-type]
        graph=graph,
        bundle_version=dag.bundle_version,
        triggered_by="asset",
        creating_job_id=tick.job_id,
    )


def _create(new: list[NewRun], queued: dict[str, list[_Queued]], tick: Tick) -> int:
    """The runs, their links to the events, and the end of the queued rows that they took."""
    made = {
        run.dag_id: key for run, key in zip(new, creation.create_runs(new, tick.now), strict=True) if key is not None
    }
    links = AssetEvent.created_dagruns.through
    links.objects.bulk_create(
        [links(assetevent_id=event.event_id, dagrun_id=key) for dag_id, key in made.items() for event in queued[dag_id]]
    )
    taken = [event.id for dag_id in made for event in queued[dag_id]]
    AssetQueuedEvent.objects.filter(pk__in=taken).delete()
    metrics.RUNS_CREATED.inc(len(made))
    return len(made)
