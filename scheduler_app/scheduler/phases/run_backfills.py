"""Makes the runs of backfills, starts as many as each may have under way, and ends a backfill with its last run (F-31).

The runs are ordinary runs: the same phases drive them, in the same pools. Only their number is counted by itself: they
take no room from the schedule, nor does the schedule take theirs (BC-101).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from scheduler_app import access
from scheduler_app.actions import clear, selection
from scheduler_app.engine import reprocess
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.run_plans import run_id
from scheduler_app.models import Backfill, BackfillSlot, DagModel, DagRun, backfill, creation, db, graphs
from scheduler_app.models.creation import NewRun
from scheduler_app.scheduler.phases.create_runs import graph_of
from scheduler_app.scheduler.phases.start_runs import Queued, start_in_order
from scheduler_app.scheduler.tick import Tick, backoff, error_text
from scheduler_app.timetables import from_doc

#: Slots of one backfill that one pass turns into runs.
SLOTS = 64

_TAKE = """
SELECT b.id FROM scheduler_backfill b JOIN scheduler_dag d ON d.dag_id = b.dag_id
WHERE b.completed_at IS NULL AND NOT b.slots_pending AND (b.backoff_until IS NULL OR b.backoff_until <= %(now)s)
ORDER BY d.dag_id LIMIT %(limit)s FOR NO KEY UPDATE OF d SKIP LOCKED
"""
#: Queued runs of each backfill, in the order of its slots, as many as it has room for.
_TO_START = """
SELECT q.id, b.dag_id, q.run_type, q.run_after, q.first_start_date
FROM scheduler_backfill b JOIN scheduler_dag d ON d.dag_id = b.dag_id
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM scheduler_dag_run WHERE backfill_id = b.id AND state = 'running'
) running
CROSS JOIN LATERAL (
    SELECT r.id, r.run_type, r.run_after, r.first_start_date, s.ordinal
    FROM scheduler_dag_run r JOIN scheduler_backfill_slot s ON s.dag_run_id = r.id AND s.backfill_id = b.id
    WHERE r.backfill_id = b.id AND r.state = 'queued' AND (r.held_at IS NULL OR r.held_until <= %(now)s)
    ORDER BY s.ordinal LIMIT greatest(0, b.max_active_runs - running.n)
) q
WHERE b.id = ANY(%(backfills)s) AND NOT b.is_paused AND NOT d.is_paused AND NOT d.is_stale
ORDER BY b.dag_id, q.ordinal LIMIT %(limit)s
"""
_COMPLETE = """
UPDATE scheduler_backfill b SET completed_at = %(now)s, updated_at = %(now)s
WHERE b.id = ANY(%(backfills)s)
  AND NOT EXISTS (SELECT 1 FROM scheduler_backfill_slot s WHERE s.backfill_id = b.id AND s.outcome IS NULL)
  AND NOT EXISTS (SELECT 1 FROM scheduler_dag_run r WHERE r.backfill_id = b.id AND r.state IN ('queued', 'running'))
"""
_BLAME = """
UPDATE scheduler_backfill SET failures = failures + 1, error = %(error)s, backoff_until = %(until)s
WHERE id = %(backfill)s
"""


def run(tick: Tick) -> int:
    keys = [row[0] for row in db.fetch(_TAKE, {"now": tick.now, "limit": tick.limit})]
    if not keys:
        return 0
    tick.working_on = list(keys)
    made = _make(keys, tick)
    oldest = db.fetch(_TO_START, {"backfills": keys, "now": tick.now, "limit": tick.limit})
    started = start_in_order([Queued(*row) for row in oldest], tick)
    return made + started + db.execute(_COMPLETE, {"backfills": keys, "now": tick.now})


def blame(tick: Tick, backfill_id: object, error: BaseException) -> None:
    """A backfill whose runs cannot be made keeps the error and is left alone for a while."""
    failures = Backfill.objects.filter(pk=backfill_id).values_list("failures", flat=True).first() or 0
    until = backoff(failures, tick.now, tick.rng)
    db.execute(_BLAME, {"backfill": backfill_id, "error": error_text(error), "until": until})


def _make(keys: Sequence[int], tick: Tick) -> int:
    """The next slots of each as runs; how many slots were decided. One that raises keeps its error (I5)."""
    slots: dict[int, list[BackfillSlot]] = defaultdict(list)
    for slot in _next_slots(keys):
        slots[slot.backfill_id].append(slot)
    rows = Backfill.objects.select_related("dag").in_bulk(list(slots))
    versions = (row.dag.latest_version_id for row in rows.values())
    compiled, errors = graphs.readable(version for version in versions if version is not None)
    for key, row in rows.items():
        try:
            _fill(row, slots[key], compiled, errors, tick)
        except LookupError as error:
            blame(tick, key, error)
    return sum(len(of_one) for of_one in slots.values())


def _next_slots(keys: Sequence[int]) -> list[BackfillSlot]:
    found: list[BackfillSlot] = []
    for key in keys:
        found += BackfillSlot.objects.filter(backfill_id=key, outcome__isnull=True).order_by("ordinal")[:SLOTS]
    return found


def _fill(
    row: Backfill,
    slots: Sequence[BackfillSlot],
    compiled: Mapping[UUID, Graph],
    errors: Mapping[UUID, Exception],
    tick: Tick,
) -> None:
    graph = graph_of(row.dag, compiled, errors)
    there = backfill.last_of(row.dag_id, [slot.logical_date for slot in slots if slot.logical_date is not None])
    fresh: list[BackfillSlot] = []
    for slot in slots:
        run = there.get(slot.logical_date) if slot.logical_date is not None else None
        slot.outcome = reprocess.of_slot(run.state if run else None, row.reprocess_behavior)
        if slot.outcome == reprocess.CREATED:
            fresh.append(slot)
        elif slot.outcome == reprocess.CLEARED and run is not None:
            _do_again(row, run, tick)
            slot.dag_run_id = run.pk
    keys = creation.create_runs([_new_run(row, slot, graph, tick) for slot in fresh], tick.now)
    for slot, key in zip(fresh, keys, strict=True):
        slot.dag_run_id = key
        if key is None:
            slot.outcome = reprocess.ALREADY_EXISTS
    BackfillSlot.objects.bulk_update(slots, ["outcome", "dag_run_id"])
    if row.failures:
        Backfill.objects.filter(pk=row.pk).update(failures=0, error=None, backoff_until=None)


def _do_again(row: Backfill, run: DagRun, tick: Tick) -> None:
    """Clears a run that has ended, and makes it one of the backfill's (I10: the backfill is the actor)."""
    actor = access.system("backfill", f"backfill {row.pk}")
    wanted = selection.Wanted(row.dag_id, runs=[run.run_id])
    clear.clear(actor, wanted, tick.now, latest_version=bool(row.run_on_latest_version), event="clear_dag_run")
    DagRun.objects.filter(pk=run.pk).update(backfill_id=row.pk, run_type="backfill", conf=row.dag_run_conf or run.conf)


def _new_run(row: Backfill, slot: BackfillSlot, graph: Graph, tick: Tick) -> NewRun:
    dag: DagModel = row.dag
    return NewRun(
        dag_id=row.dag_id,
        run_id=run_id("backfill", run_after=slot.run_after, logical_date=slot.logical_date),
        run_type="backfill",
        run_after=slot.run_after,
        version_id=dag.latest_version_id,  # type: ignore[arg-type]
        graph=graph,
        logical_date=slot.logical_date,
        data_interval_start=slot.data_interval_start,
        data_interval_end=slot.data_interval_end,
        conf=row.dag_run_conf,
        triggered_by="backfill",
        triggering_user_name=row.triggering_user_name,
        bundle_version=dag.bundle_version,
        creating_job_id=tick.job_id,
        backfill_id=row.pk,
        partition_key=from_doc(dag.timetable or {"kind": "null"}).partition_key(slot.run_after),
    )
