"""XComs that people write by hand: a value that a task should have pushed, or one that is wrong."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app import wire
from scheduler_app.access import Actor
from scheduler_app.models import DagRun, TaskInstance, XCom, db

from . import journal, permit
from .errors import Conflict, Missing


def create(
    actor: Actor, dag_id: str, run_id: str, task_id: str, key: str, value: Any, now: datetime, *, map_index: int = -1
) -> XCom:
    """A new XCom of a task instance; ``value`` is JSON. Raises Missing, Conflict (the key is there), Forbidden."""
    permit.require(actor, "add", "xcom")
    with db.atomic():
        run = permit.run_to_change(actor, dag_id, run_id)
        if not TaskInstance.objects.filter(dag_run=run, task_id=task_id, map_index=map_index).exists():
            raise Missing(
                f"The Task Instance with dag_id: `{dag_id}`, run_id: `{run_id}`, task_id: `{task_id}` and map_index:"
                f" `{map_index}` was not found"
            )
        if _of(run, task_id, map_index).filter(key=key).exists():
            raise Conflict(f"The XCom with key: `{key}` with mentioned task instance already exists.")
        xcom = XCom.objects.create(
            dag_run=run,
            dag_id=dag_id,
            task_id=task_id,
            map_index=map_index,
            key=key,
            value=wire.encode(value),
            timestamp=now,
        )
        journal.record(actor, "create_xcom_entry", now, run=run, extra=_facts(xcom))
    return xcom


def change(
    actor: Actor, dag_id: str, run_id: str, task_id: str, key: str, value: Any, now: datetime, *, map_index: int = -1
) -> XCom:
    """A new value for an XCom that is there. Raises Missing, Forbidden."""
    permit.require(actor, "change", "xcom")
    with db.atomic():
        run = permit.run_to_change(actor, dag_id, run_id)
        xcom = _one(run, task_id, key, map_index)
        xcom.value, xcom.timestamp = wire.encode(value), now
        xcom.save(update_fields=["value", "timestamp"])
        journal.record(actor, "update_xcom_entry", now, run=run, extra=_facts(xcom))
    return xcom


def delete(
    actor: Actor, dag_id: str, run_id: str, task_id: str, key: str, now: datetime, *, map_index: int = -1
) -> None:
    """Raises Missing, Forbidden."""
    permit.require(actor, "delete", "xcom")
    with db.atomic():
        run = permit.run_to_change(actor, dag_id, run_id)
        xcom = _one(run, task_id, key, map_index)
        journal.record(actor, "delete_xcom_entry", now, run=run, extra=_facts(xcom))
        xcom.delete()


def _of(run: DagRun, task_id: str, map_index: int) -> Any:
    return XCom.objects.filter(dag_run=run, task_id=task_id, map_index=map_index)


def _one(run: DagRun, task_id: str, key: str, map_index: int) -> XCom:
    xcom = _of(run, task_id, map_index).filter(key=key).select_for_update(no_key=True, of=("self",)).first()
    if xcom is None:
        raise Missing(f"The XCom with key: `{key}` with mentioned task instance doesn't exist.")
    return xcom  # type: ignore[no-any-return]


def _facts(xcom: XCom) -> dict[str, Any]:
    return {"task_id": xcom.task_id, "map_index": xcom.map_index, "key": xcom.key}
