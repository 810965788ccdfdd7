"""The gate of every action: may this actor do it, and does the object exist for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.models import DagModel, DagRun, TaskInstance

from .errors import Forbidden, Missing


def require(actor: Actor, verb: str, kind: str) -> None:
    """Raises Forbidden unless the actor may do this to that kind of thing."""
    if not access.can(actor, verb, kind):
        raise Forbidden(f"{actor.name or 'An anonymous user'} may not {verb} a {kind.replace('_', ' ')}.")


def dag_to_change(actor: Actor, dag_id: str) -> DagModel:
    """A DAG, its row locked (the first lock of I9). Raises Missing, or Forbidden when the DAG may only be seen."""
    rows = access.dags(actor, "change").filter(pk=dag_id)
    dag = rows.select_for_update(no_key=True, of=("self",)).first()
    if dag is None:
        _refuse_or_miss(actor, dag_id)
        raise Missing(f"The DAG with ID: `{dag_id}` was not found")
    return dag


def dag_checked(actor: Actor, dag_id: str) -> None:
    """As :func:`dag_to_change`, without the lock."""
    if not access.dags(actor, "change").filter(pk=dag_id).exists():
        _refuse_or_miss(actor, dag_id)
        raise Missing(f"The DAG with ID: `{dag_id}` was not found")


def run_to_change(actor: Actor, dag_id: str, run_id: str) -> DagRun:
    """A run, its row locked. Raises Missing or Forbidden."""
    return runs_to_change(actor, dag_id, [run_id])[0]


def runs_to_change(actor: Actor, dag_id: str, run_ids: Sequence[str]) -> list[DagRun]:
    """Runs of one DAG in the given order, their rows locked by key (I9). Raises Missing or Forbidden."""
    dag_checked(actor, dag_id)
    rows = DagRun.objects.filter(dag_id=dag_id, run_id__in=run_ids).order_by("pk")
    return in_order(rows.select_for_update(no_key=True, of=("self",)), dag_id, run_ids)


def in_order(rows: Iterable[DagRun], dag_id: str, run_ids: Sequence[str]) -> list[DagRun]:
    """These runs of a DAG as they were asked for, each once. Raises Missing."""
    found = {run.run_id: run for run in rows}
    for run_id in run_ids:
        if run_id not in found:
            raise Missing(f"The DagRun with dag_id: `{dag_id}` and run_id: `{run_id}` was not found")
    return [found[run_id] for run_id in dict.fromkeys(run_ids)]


def task_instance_to_change(actor: Actor, dag_id: str, run_id: str, task_id: str, map_index: int) -> TaskInstance:
    """A task instance, its run's row and its own locked. Raises Missing or Forbidden."""
    run = run_to_change(actor, dag_id, run_id)
    rows = TaskInstance.objects.filter(dag_run=run, task_id=task_id, map_index=map_index)
    found = rows.select_for_update(no_key=True, of=("self",)).first()
    if found is None:
        raise Missing(
            f"The Task Instance with dag_id: `{dag_id}`, run_id: `{run_id}`, task_id: `{task_id}` and map_index:"
            f" `{map_index}` was not found"
        )
    return found


def _refuse_or_miss(actor: Actor, dag_id: str) -> None:
    if access.dags(actor).filter(pk=dag_id).exists():
        raise Forbidden(f"{actor.name} may see the DAG `{dag_id}` but not change it.")
