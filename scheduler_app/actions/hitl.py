"""Answer the question that a task asks a person (``HITLOperator``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scheduler_app import wire
from scheduler_app.access import Actor
from scheduler_app.engine import states
from scheduler_app.models import TaskInstance, TaskState, db
from scheduler_app.models.state_store import ANSWER_KEY, QUESTION_KEY

from . import journal, permit
from .errors import Conflict, Forbidden, Invalid, Missing


def respond(
    actor: Actor,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    chosen_options: Sequence[str],
    params_input: Mapping[str, Any],
    now: datetime,
) -> dict[str, Any]:
    """Stores the answer that the task's trigger waits for, and returns it.

    Raises Missing (no such task instance, or it asks nothing), Conflict (answered, or nobody waits any more),
    Forbidden (somebody else is asked), Invalid (an option that there is not).
    """
    permit.require(actor, "change", "task")
    with db.atomic():
        task = permit.task_instance_to_change(actor, dag_id, run_id, task_id, map_index)
        question = _question(task)
        _check_person(actor, question)
        _check_open(task)
        _check_choice(chosen_options, question)
        answer = {
            "chosen_options": list(chosen_options),
            "params_input": dict(params_input),
            "responded_by_user": {"id": actor.user_id or actor.name, "name": actor.name},
            "responded_at": now.isoformat(),
        }
        own = {"dag_run_id": task.dag_run_id, "task_id": task_id, "map_index": map_index, "key": ANSWER_KEY}
        TaskState.objects.create(**own, dag_id=dag_id, value=wire.encode(answer, "the answer"), updated_at=now)
        journal.record(
            actor,
            "update_hitl_detail",
            now,
            run=task.dag_run,
            task=task,
            after={"chosen_options": list(chosen_options)},
        )
    return answer


def _state(task: TaskInstance, key: str) -> TaskState | None:
    rows = TaskState.objects.filter(dag_run_id=task.dag_run_id, task_id=task.task_id, map_index=task.map_index, key=key)
    return rows.first()


def _question(task: TaskInstance) -> dict[str, Any]:
    found = _state(task, QUESTION_KEY)
    if found is None:
        raise Missing(f"Human-in-the-loop detail does not exist for the task `{task.task_id}`: it asks nothing.")
    question: dict[str, Any] = wire.plain(found.value)
    return question


def _check_person(actor: Actor, question: Mapping[str, Any]) -> None:
    asked = {str(user["id"]) for user in question.get("assigned_users") or ()}
    if asked and asked.isdisjoint({actor.user_id, actor.name}):
        raise Forbidden(f"User {actor.name} is not among those who are asked: {', '.join(sorted(asked))}.")


def _check_open(task: TaskInstance) -> None:
    if _state(task, ANSWER_KEY) is not None:
        raise Conflict("Human-in-the-loop detail has already been updated: the question is answered.")
    if task.state in states.FINISHED:
        raise Conflict(f"The task has ended as {task.state}: nobody waits for an answer any more.")


def _check_choice(chosen: Sequence[str], question: Mapping[str, Any]) -> None:
    unknown = [option for option in chosen if option not in question["options"]]
    if unknown:
        raise Invalid("chosen_options", f"{unknown} is none of the options {question['options']}.")
    if len(chosen) > 1 and not question.get("multiple"):
        raise Invalid("chosen_options", "Only one option can be chosen.")
