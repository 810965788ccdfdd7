"""Choosing what runs next: SkipMixin and the operators that follow some of their children."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scheduler_app.sdk.exceptions import AirflowException, DownstreamTasksSkipped
from scheduler_app.sdk.operator import BaseOperator


class SkipMixin:
    """For tasks that skip their followers when they end; the skips travel with the attempt's outcome."""

    inherits_from_skipmixin = True

    def skip(self, ti: Any, tasks: Iterable[Any]) -> None:
        """Ends the attempt as success and skips ``tasks`` (operators or ids)."""
        skip_keys(ti, [task for task in tasks if not getattr(task, "is_teardown", False)])

    def skip_all_except(self, ti: Any, branch_task_ids: str | Iterable[str] | None) -> None:
        """Skips the direct children that neither are chosen nor come after a chosen task."""
        skip_keys(ti, skips_except(ti.task, branch_task_ids))


def skip_keys(ti: Any, tasks: Iterable[Any]) -> None:
    """Raises DownstreamTasksSkipped with the keys of ``tasks``: ids, or (id, map index) inside a mapped group.

    One of many instances speaks for its own index only, and an index means something in its mapped group alone: what
    lies outside goes on, or one would stop it for all.
    """
    skipped = list(tasks)
    if ti.map_index >= 0:
        group = ti.task.get_closest_mapped_task_group()
        inside = set() if group is None else {task.task_id for task in group.iter_tasks()}
        ids = [task if isinstance(task, str) else task.task_id for task in skipped]
        skipped = [(task_id, ti.map_index) for task_id in ids if task_id in inside]
    else:
        skipped = [task if isinstance(task, str) else task.task_id for task in skipped]
    if skipped:
        raise DownstreamTasksSkipped(tasks=skipped)


def branch_ids(task: Any, chosen: Any) -> set[str]:
    """The task ids of a branch's answer: None, a text, a list of texts; a group stands for its roots.

    Raises AirflowException for other answers and for ids that the DAG does not have.
    """
    if chosen is None:
        return set()
    if isinstance(chosen, str):
        names = {chosen}
    elif isinstance(chosen, Iterable):
        names = set(chosen)
        wrong = {type(name).__name__ for name in names if not isinstance(name, str)}
        if wrong:
            raise AirflowException(
                f"A branch names task ids or group ids (texts); it returned a list with {sorted(wrong)}."
            )
    else:
        raise AirflowException(f"A branch returns None, an id, or a list of ids; it returned {chosen!r}.")
    dag = task.dag
    groups = dag.task_group_dict
    found: set[str] = set()
    for name in names:
        if name in dag.task_dict:
            found.add(name)
        elif name in groups:
            found.update(root.task_id for root in groups[name].get_roots())
        else:
            raise AirflowException(
                f"The branch {task.task_id!r} chose {name!r}, which is neither a task nor a group of DAG "
                f"{dag.dag_id!r}: "
                "return full ids, with the prefix of their group."
            )
    return found


def skips_except(task: Any, chosen: Any) -> list[Any]:
    """Direct children of ``task`` to be skipped when ``chosen`` is followed."""
    followed = branch_ids(task, chosen)
    kept = set(followed)
    for task_id in followed:
        kept |= task.dag.get_task(task_id).get_flat_relative_ids(upstream=False)
    return [child for child in task.downstream_list if child.task_id not in kept]


class BranchMixIn(SkipMixin):
    """For operators that compute the ids to follow themselves."""

    def do_branch(self, context: Any, branches_to_execute: Any) -> Any:
        self.skip_all_except(context["ti"], branches_to_execute)
        return branches_to_execute


class BaseBranchOperator(BaseOperator, BranchMixIn):
    """Override :meth:`choose_branch`: it returns the ids of the tasks or groups to follow."""

    inherits_from_skipmixin = True

    def choose_branch(self, context: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no choose_branch(self, context): define it.")

    def execute(self, context: Any) -> Any:
        chosen = self.choose_branch(context)
        keep_answer(self, context, chosen)
        return self.do_branch(context, chosen)


def keep_answer(task: Any, context: Any, answer: Any) -> None:
    """Pushes the result before the skips end the attempt."""
    if task.do_xcom_push and answer is not None:
        value = sorted(answer) if isinstance(answer, (set, frozenset)) else answer
        context["ti"].xcom_push(key="return_value", value=value)
