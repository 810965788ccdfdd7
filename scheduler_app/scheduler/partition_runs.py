"""Runs of DAGs that wait for partitions of assets: one for each partition whose upstream partitions have arrived.

Queued events are sorted into the partitions that they belong to, then each partition that got one is judged; the run,
its links to the events and the end of the rows that it took are one transaction, under the lock of the DAG's row.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from scheduler_app import metrics
from scheduler_app.engine.assets import AssetKey, aliases_of
from scheduler_app.engine.run_plans import run_id
from scheduler_app.models import AssetAlias, AssetEvent, AssetQueuedEvent, DagModel, creation, graphs
from scheduler_app.models.asset import PartitionEvent
from scheduler_app.models.creation import NewRun
from scheduler_app.scheduler.phases.create_runs import absolve, blame, graph_of
from scheduler_app.scheduler.tick import Tick
from scheduler_app.timetables import from_doc
from scheduler_app.timetables.partitioned import PartitionedTimetable

log = logging.getLogger(__name__)

Aliases = Mapping[str, Collection[AssetKey]]
#: dag_id, partition key
Partition = tuple[str, str]


class _Ready(NamedTuple):
    """A run to create, and the rows that it takes."""

    new: NewRun
    rows: list[PartitionEvent]


def create(dag_ids: Sequence[str], tick: Tick) -> int:
    """The runs of those of the DAGs (their rows locked) that wait for partitions; one that raises keeps its error."""
    dags = DagModel.objects.filter(pk__in=dag_ids, timetable__kind="partitioned").in_bulk()
    if not dags:
        return 0
    failed: dict[str, Exception] = {}
    timetables: dict[str, PartitionedTimetable] = {}
    for dag_id, dag in dags.items():
        try:
            timetables[dag_id] = from_doc(dag.timetable)  # type: ignore[assignment]
        except Exception as error:
            failed[dag_id] = error
    touched = _sort_in(timetables, tick)
    ready = _ready(dags, timetables, touched, failed, tick)
    created = _create(ready, tick)
    for dag_id, error in failed.items():
        blame(tick, dag_id, error)
    absolve([dag for dag_id, dag in dags.items() if dag_id not in failed], tick.now)
    return created + len(failed)


def _sort_in(timetables: Mapping[str, PartitionedTimetable], tick: Tick) -> set[Partition]:
    """Moves queued events to their partitions and returns those; an event without a fitting key is dropped."""
    queued = AssetQueuedEvent.objects.filter(dag_id__in=list(timetables)).select_related("asset", "event")
    rows: list[PartitionEvent] = []
    for one in queued.order_by("id"):
        asset, source_key = AssetKey(one.asset.name, one.asset.uri), one.event.partition_key
        for key in _keys(timetables[one.dag_id], one.dag_id, asset, source_key):
            rows.append(
                PartitionEvent(
                    dag_id=one.dag_id,
                    partition_key=key,
                    source_key=source_key,
                    asset_id=one.asset_id,
                    event_id=one.event_id,
                    created_at=tick.now,
                )
            )
    PartitionEvent.objects.bulk_create(rows, ignore_conflicts=True)
    AssetQueuedEvent.objects.filter(pk__in=[one.pk for one in queued]).delete()
    return {(row.dag_id, row.partition_key) for row in rows}


def _keys(timetable: PartitionedTimetable, dag_id: str, asset: AssetKey, source_key: str | None) -> list[str]:
    if source_key is None:
        log.info("An event of %s names no partition: it starts nothing in %s", asset.name, dag_id)
        return []
    try:
        return timetable.keys_of(asset, source_key)
    except Exception as error:  # a key that does not fit is the event's fault alone
        log.warning("Partition %r of %s belongs to no partition of %s: %s", source_key, asset.name, dag_id, error)
        return []


def _ready(
    dags: Mapping[str, DagModel],
    timetables: Mapping[str, PartitionedTimetable],
    touched: Collection[Partition],
    failed: dict[str, Exception],
    tick: Tick,
) -> list[_Ready]:
    pending = _pending(touched)
    aliases = _aliases(timetables.values())
    versions = (dag.latest_version_id for dag in dags.values() if dag.latest_version_id is not None)
    compiled, unreadable = graphs.readable(versions)
    found = []
    for (dag_id, key), rows in sorted(pending.items()):
        if dag_id in failed:
            continue
        received: dict[AssetKey, list[str]] = defaultdict(list)
        for row in rows:
            received[AssetKey(row.asset.name, row.asset.uri)].append(row.source_key)
        try:
            if timetables[dag_id].is_ready(key, received, aliases):
                graph = graph_of(dags[dag_id], compiled, unreadable)
                found.append(_Ready(_new_run(dags[dag_id], key, graph, tick), rows))
        except Exception as error:
            failed[dag_id] = error
    return found


def _pending(touched: Collection[Partition]) -> dict[Partition, list[PartitionEvent]]:
    """All that these partitions have received."""
    found: dict[Partition, list[PartitionEvent]] = defaultdict(list)
    rows = PartitionEvent.objects.filter(
        dag_id__in={dag_id for dag_id, _ in touched}, partition_key__in={key for _, key in touched}
    )
    for row in rows.select_related("asset").order_by("id"):
        if (row.dag_id, row.partition_key) in touched:
            found[row.dag_id, row.partition_key].append(row)
    return found


def _aliases(timetables: Iterable[PartitionedTimetable]) -> dict[str, set[AssetKey]]:
    names = {name for timetable in timetables for name in aliases_of(timetable.partition_condition)}
    found: dict[str, set[AssetKey]] = defaultdict(set)
    if names:
        pairs = AssetAlias.objects.filter(name__in=names, assets__isnull=False)
        for name, asset, uri in pairs.values_list("name", "assets__name", "assets__uri"):
            found[name].add(AssetKey(asset, uri))
    return found


def _new_run(dag: DagModel, key: str, graph: graphs.Graph, tick: Tick) -> NewRun:
    token = "".join(tick.rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=8))
    return NewRun(
        dag_id=dag.dag_id,
        run_id=run_id("asset_triggered", run_after=tick.now, logical_date=None, token=token),
        run_type="asset_triggered",
        run_after=tick.now,
        version_id=dag.latest_version_id,  # type: ignore[arg-type]
        graph=graph,
        bundle_version=dag.bundle_version,
        triggered_by="asset",
        creating_job_id=tick.job_id,
        partition_key=key,
    )


def _create(ready: Sequence[_Ready], tick: Tick) -> int:
    keys = creation.create_runs([one.new for one in ready], tick.now)
    made = [(key, one.rows) for key, one in zip(keys, ready, strict=True) if key is not None]
    links = AssetEvent.created_dagruns.through
    links.objects.bulk_create(
        [links(assetevent_id=row.event_id, dagrun_id=key) for key, rows in made for row in rows], ignore_conflicts=True
    )
    PartitionEvent.objects.filter(pk__in=[row.pk for _, rows in made for row in rows]).delete()
    metrics.RUNS_CREATED.inc(len(made))
    return len(made)
