"""Pause and unpause DAGs: a paused DAG gets no new scheduled runs and none of its runs goes on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.models import DagModel, DagRun, Wake, db

from . import journal, permit


def set_paused(actor: Actor, dag_id: str, paused: bool, now: datetime, *, reason: str | None = None) -> DagModel:
    """Pauses or unpauses one DAG and returns it. Raises Missing, Forbidden. Doing it again changes nothing."""
    permit.require(actor, "change", "dag")
    with db.atomic():
        dag = permit.dag_to_change(actor, dag_id)
        _apply(actor, [dag], paused, now, reason)
    return dag


def set_paused_many(
    actor: Actor, dag_ids: Sequence[str], paused: bool, now: datetime, *, reason: str | None = None
) -> list[str]:
    """As :func:`set_paused` for many, those that the actor may change; returns the ids that changed."""
    permit.require(actor, "change", "dag")
    with db.atomic():
        rows = access.dags(actor, "change").filter(pk__in=dag_ids).order_by("pk")
        return _apply(actor, list(rows.select_for_update(no_key=True, of=("self",))), paused, now, reason)


def _apply(actor: Actor, dags: list[DagModel], paused: bool, now: datetime, reason: str | None) -> list[str]:
    changed = [dag for dag in dags if dag.is_paused != paused]
    for dag in changed:
        dag.is_paused = paused
        journal.record(
            actor,
            "patch_dag",
            now,
            dag_id=dag.dag_id,
            reason=reason,
            before={"is_paused": not paused},
            after={"is_paused": paused},
        )
    ids = [dag.dag_id for dag in changed]
    DagModel.objects.filter(pk__in=ids).update(is_paused=paused)
    if not paused and ids:
        waiting = DagRun.objects.unfinished().filter(dag_id__in=ids).values_list("pk", flat=True)
        Wake.objects.add(waiting, "dag_unpaused", now)
    if ids:
        db.notify()
    return ids
