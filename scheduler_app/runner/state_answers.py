"""The state store of task instances and assets, as a running attempt or a trigger asks for it.

A task instance's state may be read by every task and written by its own attempt alone, under the fence.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from psycopg2.extras import Json

from scheduler_app.conf import conf
from scheduler_app.models import Asset, AssetState, TaskState, db
from scheduler_app.models.state_store import document
from scheduler_app.runner.refusal import Refusal

if TYPE_CHECKING:
    from scheduler_app.runner.answers import Asking

#: The row of the hand-out is the guard: one that has moved on (cleared, failed as lost) writes nothing.
_SET = """
INSERT INTO scheduler_task_state (dag_run_id, dag_id, task_id, map_index, key, value, updated_at, expires_at)
SELECT ti.dag_run_id, ti.dag_id, ti.task_id, ti.map_index, %(key)s, %(value)s::jsonb, %(now)s, %(expires_at)s
FROM scheduler_task_instance ti
WHERE ti.id = %(ti)s AND ti.fence = %(fence)s AND ti.state IN ('running', 'restarting', 'deferred')
ON CONFLICT (dag_run_id, task_id, map_index, key)
DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at, expires_at = excluded.expires_at
"""


def get_state(ask: Asking) -> Any:
    rows = _of_task(ask).alive(ask.now) if "task" in ask["scope"] else _of_asset(ask)
    return document(rows.filter(key=ask["key"]).first())


def set_state(ask: Asking) -> None:
    if "task" not in ask["scope"]:
        _set_of_asset(ask)
        return
    _need_own(ask)
    claim = ask.claim
    params = {"key": ask["key"], "value": Json(ask["value"]), "now": ask.now, "ti": claim.ti_id, "fence": claim.fence}
    if not db.execute(_SET, {**params, "expires_at": _expiry(ask["expires_after"], ask.now)}):
        raise Refusal("TaskMovedOn", "This attempt is no longer that of its task: it was cleared, marked or replaced.")


def delete_state(ask: Asking) -> None:
    """One key, or with none the whole scope."""
    if "task" in ask["scope"]:
        _need_own(ask)
        rows: QuerySet[Any] = _of_task(ask)
    else:
        rows = _of_asset(ask)
    (rows if ask["key"] is None else rows.filter(key=ask["key"])).delete()


def _of_task(ask: Asking) -> Any:
    task = ask["scope"]["task"]
    return TaskState.objects.filter(
        dag_run__dag_id=task["dag_id"],
        dag_run__run_id=task["run_id"],
        task_id=task["task_id"],
        map_index=task["map_index"],
    )


def _need_own(ask: Asking) -> None:
    task, claim = ask["scope"]["task"], ask.claim
    own = {"dag_id": claim.dag_id, "run_id": claim.run_id, "task_id": claim.task_id, "map_index": claim.map_index}
    if {name: task.get(name) for name in own} != own:
        raise Refusal("NotYourState", "A task may change its own state only, not that of another task instance.")


def _expiry(seconds: float | str | None, now: datetime) -> datetime | None:
    if seconds is None:
        days = conf().task_state_days
        return now + timedelta(days=days) if days else None
    return None if isinstance(seconds, str) else now + timedelta(seconds=seconds)


def _asset(ask: Asking) -> Asset:
    named = ask["scope"]["asset"]
    wanted = {name: value for name, value in named.items() if value}
    found = Asset.objects.filter(**wanted).first() if wanted else None
    if found is None:
        name = named["name"] or named["uri"]
        raise Refusal("AssetNotFound", f"There is no asset {name!r}: name it in outlets or inlets of a task.")
    return found


def _of_asset(ask: Asking) -> QuerySet[AssetState]:
    return AssetState.objects.filter(asset=_asset(ask))


def _set_of_asset(ask: Asking) -> None:
    claim = ask.claim
    by = {"dag_id": claim.dag_id, "run_id": claim.run_id, "task_id": claim.task_id, "map_index": claim.map_index}
    AssetState.objects.bulk_create(
        [AssetState(asset=_asset(ask), key=ask["key"], value=ask["value"], updated_at=ask.now, updated_by=by)],
        update_conflicts=True,
        unique_fields=["asset", "key"],
        update_fields=["value", "updated_at", "updated_by"],
    )
