"""Takes runs out of their partitions: what was built for a partition key is to be built anew, by another run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduler_app.access import Actor
from scheduler_app.models import DagRun, db

from . import clear, journal, permit, selection


@dataclass(frozen=True, slots=True)
class Emptied:
    runs: int
    task_instances: int


def chosen(dag_id: str, *, run_id: str | None, partition_key: str | None) -> list[DagRun]:
    """The runs of a DAG that one of the two names, in a stable order."""
    rows = DagRun.objects.filter(dag_id=dag_id)
    rows = rows.filter(run_id=run_id) if run_id is not None else rows.filter(partition_key=partition_key)
    return list(rows.order_by("pk"))


def empty(
    actor: Actor,
    dag_id: str,
    now: datetime,
    *,
    run_id: str | None,
    partition_key: str | None,
    clear_tasks: bool,
    dry_run: bool,
) -> Emptied:
    """Takes the partition key from the runs named, and with ``clear_tasks`` clears their task instances.

    ``dry_run`` only counts. Raises Missing, Forbidden, Refused.
    """
    permit.require(actor, "change", "run")
    with db.atomic():
        permit.dag_checked(actor, dag_id)
        found = chosen(dag_id, run_id=run_id, partition_key=partition_key)
        keyed = [run for run in found if run.partition_key is not None]
        wanted = selection.Wanted(dag_id, runs=[run.run_id for run in found])
        if dry_run or not found:
            cleared = selection.chosen(actor, wanted).count() if clear_tasks and found else 0
            return Emptied(len(keyed), cleared)
        cleared = len(clear.clear(actor, wanted, now, event="clear_partitions").task_instances) if clear_tasks else 0
        _take(actor, keyed, now)
        db.notify()
    return Emptied(len(keyed), cleared)


def _take(actor: Actor, runs: Sequence[DagRun], now: datetime) -> None:
    DagRun.objects.filter(pk__in=[run.pk for run in runs]).update(partition_key=None)
    for run in runs:
        before = {"partition_key": run.partition_key}
        journal.record(actor, "clear_partitions", now, run=run, before=before, after={"partition_key": None})
