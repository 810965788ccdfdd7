"""Creates the runs of DAGs whose asset condition is fulfilled by queued events: exactly one for the events it takes.

The DAG's row is locked before its queued events are read, and the run, its links to the events and the deletion of
the queued rows are one transaction: two schedulers cannot use the same events twice (BC-103).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from scheduler_app import metrics
from scheduler_app.engine.assets import AssetKey, aliases_of, satisfied
from scheduler_app.engine.run_plans import run_id
from scheduler_app.models import AssetAlias, AssetEvent, AssetQueuedEvent, DagModel, creation, db, graphs
from scheduler_app.models.creation import NewRun
from scheduler_app.scheduler.tick import Tick, backoff, error_text
from scheduler_app.timetables import from_doc

#: DAGs that one pass takes.
DAGS = 100

_TAKE = """
SELECT d.dag_id FROM scheduler_dag d
WHERE d.dag_id IN (SELECT DISTINCT dag_id FROM scheduler_asset_queued_event)
  AND NOT d.is_paused AND NOT d.is_stale AND (d.held_at IS NULL OR d.held_until <= %(now)s)
  AND (d.backoff_until IS NULL OR d.backoff_until <= %(now)s)
ORDER BY d.dag_id LIMIT %(limit)s FOR NO KEY UPDATE OF d SKIP LOCKED
"""
_BLAME = """
UPDATE scheduler_dag SET schedule_failures = schedule_failures + 1, schedule_error = %(error)s,
    backoff_until = %(until)s
WHERE dag_id = %(dag)s
"""


class _Queued(NamedTuple):
    id: int
    asset: AssetKey
    event_id: int
    created_at: datetime


def run(tick: Tick) -> int:
    tick.working_on = [row[0] for row in db.fetch(_TAKE, {"now": tick.now, "limit": min(tick.limit, DAGS)})]
    if not tick.working_on:
        return 0
    dags = DagModel.objects.in_bulk(tick.working_on)
    queued = _queued_events(tick.working_on)
    conditions = {dag_id: from_doc(dags[dag_id].timetable).asset_condition for dag_id in tick.working_on}
    aliases = _aliases(conditions.values())
    ready = [
        dags[dag_id]
        for dag_id in tick.working_on
        if conditions[dag_id] is not None
        and satisfied(conditions[dag_id], {event.asset for event in queued[dag_id]}, aliases)
    ]
    return _create(ready, queued, tick)


def blame(tick: Tick, dag_id: object, error: BaseException) -> None:
    """A DAG whose condition cannot be read keeps the error and is left alone for a while."""
    db.execute(_BLAME, {"dag": dag_id, "error": error_text(error), "until": backoff(0, tick.now, tick.rng)})


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


def _create(ready: list[DagModel], queued: dict[str, list[_Queued]], tick: Tick) -> int:
    compiled = graphs.graphs_of(dag.latest_version_id for dag in ready if dag.latest_version_id is not None)
    new = []
    for dag in ready:
        if dag.latest_version_id not in compiled:
            raise LookupError(
                f"The definition of DAG {dag.dag_id} is not stored; it is retried when its file is parsed."
            )
        run_after = max(event.created_at for event in queued[dag.dag_id])
        token = "".join(tick.rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=8))
        new.append(
            NewRun(
                dag_id=dag.dag_id,
                run_id=run_id("asset_triggered", run_after=run_after, logical_date=None, token=token),
                run_type="asset_triggered",
                run_after=run_after,
                version_id=dag.latest_version_id,
                graph=compiled[dag.latest_version_id],
                bundle_version=dag.bundle_version,
                triggered_by="asset",
                creating_job_id=tick.job_id,
            )
        )
    keys = creation.create_runs(new, tick.now)
    links = AssetEvent.created_dagruns.through
    links.objects.bulk_create(
        [
            links(assetevent_id=event.event_id, dagrun_id=key)
            for made, key in zip(new, keys, strict=True)
            if key is not None
            for event in queued[made.dag_id]
        ]
    )
    taken = [event.id for made in new for event in queued[made.dag_id]]
    AssetQueuedEvent.objects.filter(pk__in=taken).delete()
    metrics.RUNS_CREATED.inc(len(new))
    return len(new)
