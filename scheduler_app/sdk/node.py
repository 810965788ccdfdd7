"""What tasks and task groups share: an id, a DAG, and edges drawn with ``>>`` and ``<<``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from scheduler_app.sdk.exceptions import AirflowException

if TYPE_CHECKING:
    from scheduler_app.sdk.dag import DAG
    from scheduler_app.sdk.task_group import TaskGroup

MAX_ID_LENGTH = 250
_ID = re.compile(r"[\w.-]+")
_GROUP_ID = re.compile(r"[\w-]+")


def validate_id(value: Any, what: str, *, group: bool = False) -> str:
    """``value`` itself, when it may be an id. Raises TypeError or AirflowException that names it."""
    if not isinstance(value, str):
        raise TypeError(f"A {what} is a text, not {value!r} ({type(value).__qualname__}).")
    if len(value) > MAX_ID_LENGTH:
        raise AirflowException(f"The {what} {value[:40]!r}… is longer than {MAX_ID_LENGTH} characters: shorten it.")
    if not (_GROUP_ID if group else _ID).fullmatch(value):
        allowed = (
            "letters, digits, dashes and underscores" if group else "letters, digits, dashes, dots and underscores"
        )
        raise AirflowException(f"The {what} {value!r} may only have {allowed}.")
    return value


class Linkable:
    """Anything that can stand beside ``>>``: tasks, groups, XComArgs, lists of them through the reflected operators."""

    def set_upstream(self, other: Any, edge_modifier: Any = None) -> None:
        raise NotImplementedError

    def set_downstream(self, other: Any, edge_modifier: Any = None) -> None:
        raise NotImplementedError

    def update_relative(self, other: Any, upstream: bool = True, edge_modifier: Any = None) -> None:
        """Called on the far end of an edge that was drawn; groups remember it."""

    @property
    def roots(self) -> Sequence[Any]:
        raise NotImplementedError

    @property
    def leaves(self) -> Sequence[Any]:
        raise NotImplementedError

    def __rshift__(self, other: Any) -> Any:
        self.set_downstream(other)
        return other

    def __lshift__(self, other: Any) -> Any:
        self.set_upstream(other)
        return other

    def __rrshift__(self, other: Any) -> Any:
        """``[a, b] >> self``"""
        self.set_upstream(other)
        return self

    def __rlshift__(self, other: Any) -> Any:
        """``[a, b] << self``"""
        self.set_downstream(other)
        return self


class DAGNode(Linkable):
    """A task or a group of one DAG. ``upstream_task_ids`` and ``downstream_task_ids`` hold its edges to tasks."""

    dag: DAG | None
    task_group: TaskGroup | None
    upstream_task_ids: set[str]
    downstream_task_ids: set[str]

    @property
    def node_id(self) -> str:
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The id without the prefix of its group."""
        group = self.task_group
        prefix = group.node_prefix if group is not None else ""
        return self.node_id[len(prefix) :] if prefix and self.node_id.startswith(prefix) else self.node_id

    def has_dag(self) -> bool:
        return self.dag is not None

    @property
    def dag_id(self) -> str:
        return self.dag.dag_id if self.dag is not None else "_in_memory_dag_"

    def _need_dag(self) -> DAG:
        if self.dag is None:
            raise RuntimeError(f"{self!r} belongs to no DAG: make it inside `with DAG(...)`, or give it dag=….")
        return self.dag

    def get_direct_relative_ids(self, upstream: bool = False) -> set[str]:
        return self.upstream_task_ids if upstream else self.downstream_task_ids

    def get_direct_relatives(self, upstream: bool = False) -> list[Any]:
        dag = self._need_dag()
        return [dag.get_task(task_id) for task_id in sorted(self.get_direct_relative_ids(upstream))]

    @property
    def upstream_list(self) -> list[Any]:
        return self.get_direct_relatives(upstream=True)

    @property
    def downstream_list(self) -> list[Any]:
        return self.get_direct_relatives(upstream=False)

    def get_flat_relative_ids(self, *, upstream: bool = False) -> set[str]:
        """Ids of all tasks that come before (or after) this one, at any distance."""
        dag = self._need_dag()
        found: set[str] = set()
        pending = list(self.get_direct_relative_ids(upstream))
        while pending:
            task_id = pending.pop()
            if task_id not in found:
                found.add(task_id)
                pending.extend(dag.get_task(task_id).get_direct_relative_ids(upstream))
        return found

    def get_flat_relatives(self, upstream: bool = False) -> list[Any]:
        dag = self._need_dag()
        return [dag.get_task(task_id) for task_id in sorted(self.get_flat_relative_ids(upstream=upstream))]

    def set_upstream(self, other: Any, edge_modifier: Any = None) -> None:
        self._draw(other, upstream=True, modifier=edge_modifier)

    def set_downstream(self, other: Any, edge_modifier: Any = None) -> None:
        self._draw(other, upstream=False, modifier=edge_modifier)

    def _draw(self, other: Any, *, upstream: bool, modifier: Any) -> None:
        """Edges from every leaf of one side to every root of the other."""
        from scheduler_app.sdk.edges import EdgeModifier

        for far in as_linkables(other):
            if isinstance(far, EdgeModifier):
                far.take(self, upstream=upstream)
                continue
            near_tasks = list(self.roots if upstream else self._last_tasks())
            far_tasks = list(far.leaves if upstream else far.roots)
            far.update_relative(self, upstream=not upstream, edge_modifier=modifier)
            self._note_relative(far, upstream=upstream)
            for near_task in near_tasks:
                for far_task in far_tasks:
                    first, second = (far_task, near_task) if upstream else (near_task, far_task)
                    connect(first, second, modifier)

    def _last_tasks(self) -> Sequence[Any]:
        """The tasks that an edge to something after this node begins at."""
        return self.leaves

    def _note_relative(self, far: Any, *, upstream: bool) -> None:
        """Groups remember their edges to whole groups and to tasks, for the picture."""


def as_linkables(value: Any) -> list[Any]:
    """``value``, or the items of a sequence, each able to take edges. Raises AirflowException for anything else."""
    items: Iterable[Any] = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
    found = []
    for item in items:
        if isinstance(item, (list, tuple)):
            found.extend(as_linkables(item))
            continue
        if not isinstance(item, Linkable):
            raise AirflowException(
                f"Relationships can only be set between tasks and task groups; got {item!r} "
                f"({type(item).__qualname__}). "
                "If it is a function decorated with @task, call it."
            )
        found.append(item)
    return found


def connect(first: Any, second: Any, modifier: Any = None) -> None:
    """One edge between two tasks. A task without a DAG joins that of the other. Raises AirflowException across DAGs."""
    if first.dag is None and second.dag is None:
        raise AirflowException(
            f"Tasks {first.task_id!r} and {second.task_id!r} belong to no DAG: make them inside `with DAG(...)`."
        )
    if first.dag is None:
        second.dag.add_task(first)
    elif second.dag is None:
        first.dag.add_task(second)
    elif first.dag is not second.dag:
        raise AirflowException(
            f"Tasks {first.task_id!r} (DAG {first.dag.dag_id!r}) and {second.task_id!r} (DAG {second.dag.dag_id!r}) "
            "cannot be connected: an edge stays inside one DAG. Use ExternalTaskSensor or an asset between DAGs."
        )
    first.downstream_task_ids.add(second.task_id)
    second.upstream_task_ids.add(first.task_id)
    if modifier is not None:
        modifier.label_edge(first.dag, first.task_id, second.task_id)
