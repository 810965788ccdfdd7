"""What people do to the state that tasks and assets keep: set a value, delete one, delete all."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app import wire
from scheduler_app.access import Actor
from scheduler_app.models import Asset, AssetState, DagRun, TaskState, db
from scheduler_app.models.state_store import ANSWER_KEY, QUESTION_KEY

from . import journal, permit
from .errors import Missing, Refused

#: What ``updated_by`` says of a value that a person set.
BY_API = {"kind": "api"}


def set_of_task(
    actor: Actor,
    place: tuple[str, str, str, int],
    key: str,
    value: Any,
    now: datetime,
    *,
    expires_at: datetime | None = None,
) -> None:
    """Makes or replaces a value; ``place`` is (DAG, run, task, map index). Raises Missing, Forbidden, Refused."""
    permit.require(actor, "change", "task")
    _check(key)
    with db.atomic():
        task = permit.task_instance_to_change(actor, *place)
        own = {"dag_run_id": task.dag_run_id, "task_id": task.task_id, "map_index": task.map_index, "key": key}
        written = {"dag_id": task.dag_id, "value": wire.encode(value), "updated_at": now, "expires_at": expires_at}
        TaskState.objects.update_or_create(**own, defaults=written)
        journal.record(actor, "set_task_state_store", now, task=task, run=task.dag_run, extra={"key": key})


def change_of_task(actor: Actor, place: tuple[str, str, str, int], key: str, value: Any, now: datetime) -> None:
    """A new value for a key that is there; when it expires stays. Raises Missing, Forbidden, Refused."""
    permit.require(actor, "change", "task")
    _check(key)
    with db.atomic():
        task = permit.task_instance_to_change(actor, *place)
        rows = TaskState.objects.of_task(task).alive(now).filter(key=key)
        if not rows.update(value=wire.encode(value), updated_at=now):
            raise Missing(f"Task state store key `{key}` not found")
        journal.record(actor, "patch_task_state_store", now, task=task, run=task.dag_run, extra={"key": key})


def delete_of_task(actor: Actor, place: tuple[str, str, str, int], now: datetime, key: str | None = None) -> int:
    """Deletes one value or all of a task instance; how many there were. Raises Missing, Forbidden, Refused."""
    permit.require(actor, "delete", "task")
    with db.atomic():
        task = permit.task_instance_to_change(actor, *place)
        rows = TaskState.objects.of_task(task).shown()
        if key is not None:
            _check(key)
            rows = rows.filter(key=key)
        deleted, _ = rows.delete()
        if deleted:
            extra = {"key": key, "deleted": deleted}
            journal.record(actor, "delete_task_state_store", now, task=task, run=task.dag_run, extra=extra)
    return deleted


def delete_of_all_indexes(actor: Actor, dag_id: str, run_id: str, task_id: str, now: datetime) -> int:
    """Deletes every value of every instance of a task in a run. Raises Missing, Forbidden."""
    permit.require(actor, "delete", "task")
    with db.atomic():
        run = permit.run_to_change(actor, dag_id, run_id)
        if not run.task_instances.filter(task_id=task_id).exists():
            raise Missing(f"Task instance not found for the task `{task_id}` of the run `{run_id}`")
        deleted, _ = TaskState.objects.filter(dag_run=run, task_id=task_id).shown().delete()
        if deleted:
            _record_all(actor, run, task_id, deleted, now)
    return deleted


def set_of_asset(actor: Actor, asset_id: int, key: str, value: Any, now: datetime) -> None:
    """Makes or replaces a value of an asset. Raises Missing, Forbidden."""
    permit.require(actor, "change", "asset")
    with db.atomic():
        asset = _asset(asset_id)
        AssetState.objects.update_or_create(
            asset=asset, key=key, defaults={"value": wire.encode(value), "updated_at": now, "updated_by": BY_API}
        )
        journal.record(actor, "set_asset_state_store", now, extra={"asset_id": asset_id, "key": key})


def delete_of_asset(actor: Actor, asset_id: int, now: datetime, key: str | None = None) -> int:
    """Deletes one value or all of an asset; how many there were. Raises Missing, Forbidden."""
    permit.require(actor, "delete", "asset")
    with db.atomic():
        rows = _asset(asset_id).states.all()
        deleted, _ = (rows if key is None else rows.filter(key=key)).delete()
        if deleted:
            extra = {"asset_id": asset_id, "key": key, "deleted": deleted}
            journal.record(actor, "delete_asset_state_store", now, extra=extra)
    return deleted


def _asset(asset_id: int) -> Asset:
    asset = Asset.objects.filter(pk=asset_id).first()
    if asset is None:
        raise Missing(f"The Asset with ID: `{asset_id}` was not found")
    return asset


def _check(key: str) -> None:
    """Questions to people and their answers lie in the same table, and have doors of their own."""
    if key in (QUESTION_KEY, ANSWER_KEY):
        raise Refused(f"The key `{key}` holds a question to a person: use hitlDetails.")


def _record_all(actor: Actor, run: DagRun, task_id: str, deleted: int, now: datetime) -> None:
    extra = {"task_id": task_id, "map_index": "all", "deleted": deleted}
    journal.record(actor, "delete_task_state_store", now, run=run, extra=extra)
