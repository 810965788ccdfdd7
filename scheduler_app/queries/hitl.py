"""Task instances that ask a person, with their question and its answer: part of the row's own statement."""

from __future__ import annotations

from django.db.models import Exists, F, OuterRef, QuerySet, Subquery

from scheduler_app.models import TaskInstance, TaskState
from scheduler_app.models.state_store import ANSWER_KEY, QUESTION_KEY


def asking(rows: QuerySet[TaskInstance]) -> QuerySet[TaskInstance]:
    """Those that asked something, with ``question``, ``asked_at`` and ``answer`` (null until there is one)."""
    question, answer = _state(QUESTION_KEY), _state(ANSWER_KEY)
    return rows.filter(Exists(question)).annotate(
        question=Subquery(question.values("value")),
        asked_at=Subquery(question.values("updated_at")),
        answer=Subquery(answer.values("value")),
        is_answered=Exists(answer),
        run_name=F("dag_run__run_id"),
    )


def _state(key: str) -> QuerySet[TaskState]:
    return TaskState.objects.filter(
        dag_run_id=OuterRef("dag_run_id"), task_id=OuterRef("task_id"), map_index=OuterRef("map_index"), key=key
    )
