"""The one writer of states: guarded, fenced, with history and wakes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.db import InternalError, transaction

from scheduler_app.engine import states
from scheduler_app.models import TaskInstance, TaskInstanceHistory, Wake, transitions
from tests.rows import at, store, trigger
from tests.shapes import shape

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).parents[2] / "scheduler_app"


@pytest.fixture
def task() -> TaskInstance:
    (run,) = trigger(store(shape("a", tasks={"a": {"retries": 2}})))
    return TaskInstance.objects.get(dag_run=run)


def walk(task: TaskInstance, *verbs: str) -> TaskInstance:
    for second, verb in enumerate(verbs):
        assert transitions.tasks(verb, [task.pk], at(second)) == [task.pk], verb
    task.refresh_from_db()
    return task


def test_a_hand_out_raises_the_fence_and_a_start_begins_the_try(task: TaskInstance) -> None:
    walk(task, "schedule", "queue", "start")
    assert (task.state, task.fence, task.try_number) == ("running", 1, 1)
    assert (task.scheduled_when, task.queued_when, task.start_date) == (at(0), at(1), at(2))


def test_a_hand_out_that_was_lost_before_it_began_consumes_no_try(task: TaskInstance) -> None:
    walk(task, "schedule", "queue", "unqueue", "queue", "start")
    assert (task.fence, task.try_number, task.lost_hand_outs) == (2, 1, 0)


def test_a_zombie_with_an_old_fence_changes_nothing(task: TaskInstance) -> None:
    walk(task, "schedule", "queue", "start", "retry", "schedule", "queue", "start")
    assert transitions.tasks("succeed", [task.pk], at(9), fences=[1]) == []
    task.refresh_from_db()
    assert (task.state, task.fence) == ("running", 2)
    assert transitions.tasks("succeed", [task.pk], at(9), fences=[2]) == [task.pk]


def test_a_move_from_a_state_that_its_verb_may_not_leave_does_nothing(task: TaskInstance) -> None:
    assert transitions.tasks("succeed", [task.pk], at(0)) == []
    task.refresh_from_db()
    assert (task.state, task.moved_by) == (None, "create")


def test_a_retry_keeps_the_ended_try_as_history(task: TaskInstance) -> None:
    walk(task, "schedule", "queue", "start")
    transitions.tasks("retry", [task.pk], at(5), next_at=at(300), reason="killed by signal 9")
    task.refresh_from_db()
    assert (task.state, task.try_number, task.next_at) == ("up_for_retry", 1, at(300))
    past = TaskInstanceHistory.objects.get()
    assert (past.try_number, past.state, past.reason) == (1, "failed", "killed by signal 9")
    assert (past.start_date, past.end_date) == (at(2), at(5))


def test_a_reschedule_and_a_deferral_continue_the_same_try(task: TaskInstance) -> None:
    walk(task, "schedule", "queue", "start", "reschedule", "schedule", "queue", "start", "defer", "resume", "queue")
    walk(task, "start")
    assert (task.try_number, task.fence, task.first_start_date) == (1, 3, at(2))
    assert TaskInstanceHistory.objects.count() == 0


def test_clearing_a_finished_task_keeps_its_try_and_starts_afresh(task: TaskInstance) -> None:
    walk(task, "schedule", "queue", "start", "fail")
    transitions.tasks("clear", [task.pk], at(9), max_tries=3)
    task.refresh_from_db()
    assert (task.state, task.try_number, task.max_tries, task.start_date, task.end_date) == (None, 1, 3, None, None)
    assert TaskInstanceHistory.objects.get().state == "failed"
    walk(task, "schedule", "queue", "start")
    assert task.try_number == 2


def test_clearing_a_task_that_never_ran_leaves_no_history(task: TaskInstance) -> None:
    walk(task, "upstream_fail", "clear")
    assert (task.try_number, TaskInstanceHistory.objects.count()) == (0, 0)


def test_an_empty_task_that_settles_has_one_try(task: TaskInstance) -> None:
    walk(task, "settle")
    assert (task.state, task.try_number, task.start_date, task.end_date) == ("success", 1, at(0), at(0))


@pytest.mark.parametrize("verb", sorted(states.TASK_VERBS.keys() | states.TASK_ACTIONS.keys()))
def test_what_makes_a_run_due_wakes_it_in_the_same_statement(task: TaskInstance, verb: str) -> None:
    sources, _ = {**states.TASK_VERBS, **states.TASK_ACTIONS}[verb]
    TaskInstance.objects.filter(pk=task.pk).delete()
    task.state, task.pk = sorted(sources, key=str)[0], None
    task.save(force_insert=True)
    assert transitions.tasks(verb, [task.pk], at(0)) == [task.pk]
    woken = list(Wake.objects.values_list("dag_run_id", "task_id", "reason"))
    reason = transitions.TASK_WAKES.get(verb)
    assert woken == ([(task.dag_run_id, "a", reason)] if reason else [])


def test_each_row_may_have_its_own_value(task: TaskInstance) -> None:
    (other,) = TaskInstance.objects.filter(dag_run=trigger(store(shape("a", "other")))[0])
    moved = transitions.tasks("skip", [task.pk, other.pk], at(0), reason=["one", "two"])
    assert sorted(moved) == [task.pk, other.pk]
    assert list(TaskInstance.objects.order_by("pk").values_list("reason", flat=True)) == ["one", "two"]


def test_a_run_that_is_cleared_keeps_its_first_start(task: TaskInstance) -> None:
    run = task.dag_run
    for second, verb in enumerate(["start", "fail", "clear", "start"]):
        assert transitions.runs(verb, [run.pk], at(second)) == [run.pk]
    run.refresh_from_db()
    assert (run.state, run.first_start_date, run.start_date, run.clear_number) == ("running", at(0), at(3), 1)


def test_the_database_refuses_a_state_that_the_writer_did_not_announce(task: TaskInstance) -> None:
    with pytest.raises(InternalError, match="illegal move of task"), transaction.atomic():
        TaskInstance.objects.filter(pk=task.pk).update(state="success")
    walk(task, "schedule", "queue")
    with pytest.raises(InternalError, match="queued -> running by queue"), transaction.atomic():
        TaskInstance.objects.filter(pk=task.pk).update(state="running")


def test_an_unknown_verb_is_refused(task: TaskInstance) -> None:
    with pytest.raises(ValueError, match="no verb 'finish'"):
        transitions.tasks("finish", [task.pk], at(0))


def _writes_a_state(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = " ".join(node.value.lower().split())
        return "update scheduler_task_instance" in text and " set state" in text
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        names_a_state = node.func.attr == "update" and any(keyword.arg == "state" for keyword in node.keywords)
        # jobs and callbacks have a ``state`` of their own, which is no business of the writer
        return names_a_state and not any(model in ast.unparse(node.func) for model in ("Job.", "Callback.", "others."))
    return False


def _locks_many_rows_as_they_come(node: ast.AST) -> bool:
    """An UPDATE of task instances by a list of keys that does not lock them in the order of their keys first (I9)."""
    text = " ".join(ast.unparse(node).lower().split()) if isinstance(node, ast.Constant | ast.JoinedStr) else ""
    return "update scheduler_task_instance ti" in text and "unnest(" in text and "for no key update" not in text


def test_whoever_updates_many_rows_locks_them_by_key_first() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant | ast.JoinedStr) and _locks_many_rows_as_they_come(node)
    ]
    assert found == []


def test_nobody_else_writes_a_state() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        for path in sorted(ROOT.rglob("*.py"))
        if path.name != "transitions.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if _writes_a_state(node)
    ]
    assert found == []
