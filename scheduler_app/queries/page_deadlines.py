"""What was not done in time, and what is due next."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import OuterRef, QuerySet, Subquery

from scheduler_app.models import Deadline, TaskInstance

from .page_slice import page_slice

SIZE: Final = 50
COMING: Final = 20


def missed(visible: QuerySet[Deadline], kind: str, page: int) -> tuple[list[Any], bool]:
    """A page of the missed ones, the newest first, and whether there are older ones. One query."""
    rows = _listed(visible.filter(missed_at__isnull=False, **({"kind": kind} if kind else {})))
    return page_slice(rows.order_by("-missed_at", "-id"), page, SIZE)


def coming(visible: QuerySet[Deadline]) -> list[Any]:
    """Those that are due next. One query."""
    return list(_listed(visible.filter(missed_at__isnull=True)).order_by("due_at", "id")[:COMING])


def _listed(rows: QuerySet[Deadline]) -> QuerySet[Any]:
    """With their run, and ``task_state``: how the task of an SLA stands now."""
    task = TaskInstance.objects.filter(dag_run=OuterRef("dag_run"), task_id=OuterRef("task_id"))
    return rows.select_related("dag_run").annotate(task_state=Subquery(task.order_by("map_index").values("state")[:1]))
