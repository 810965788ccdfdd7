"""What is being defined right now: the DAG and the task group whose ``with`` blocks are open, and who registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler_app.sdk.dag import DAG
    from scheduler_app.sdk.node import DAGNode
    from scheduler_app.sdk.task_group import TaskGroup

_dags: list[DAG] = []
_groups: list[TaskGroup] = []
_setup_contexts: list[list[DAGNode]] = []
#: DAGs made in a ``with`` block, or by ``@dag``, while a file is imported. ``usercode.load`` empties it.
registered: list[DAG] = []


def current_dag() -> DAG | None:
    return _dags[-1] if _dags else None


def push_dag(dag: DAG) -> None:
    _dags.append(dag)


def pop_dag() -> None:
    dag = _dags.pop()
    if dag.auto_register and not any(dag is known for known in registered):
        registered.append(dag)


def current_group(dag: DAG | None) -> TaskGroup | None:
    """The innermost open group; the root group of ``dag`` when none of its groups is open."""
    if _groups and (dag is None or _groups[-1].dag is dag or _groups[-1].dag is None):
        return _groups[-1]
    return dag.task_group if dag is not None else None


def push_group(group: TaskGroup) -> None:
    _groups.append(group)


def pop_group() -> None:
    _groups.pop()


def reset() -> None:
    """Forget everything: a file that raised inside a ``with`` block leaves its blocks open."""
    _dags.clear()
    _groups.clear()
    _setup_contexts.clear()
    registered.clear()


def push_setup(nodes: list[DAGNode]) -> None:
    _setup_contexts.append([])


def pop_setup() -> list[DAGNode]:
    return _setup_contexts.pop()


def note_for_setup(node: DAGNode) -> None:
    """A task made inside ``with setup >> teardown:`` belongs between the two."""
    if _setup_contexts:
        _setup_contexts[-1].append(node)
