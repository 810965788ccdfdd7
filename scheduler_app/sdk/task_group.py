"""TaskGroup: tasks drawn together, connected together, optionally mapped together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler_app.sdk import scope
from scheduler_app.sdk.exceptions import AirflowException, DuplicateTaskIdFound, TaskAlreadyInTaskGroup
from scheduler_app.sdk.node import DAGNode, validate_id
from scheduler_app.sdk.xcom_arg import Referencing

if TYPE_CHECKING:
    from scheduler_app.sdk.dag import DAG
    from scheduler_app.sdk.mapping import ExpandInput

_DEFAULT_COLOR = "CornflowerBlue"


class TaskGroup(DAGNode):
    """A ``with`` block whose tasks get the group's id as prefix (unless ``prefix_group_id`` is off).

    The root group of a DAG has ``group_id`` None. Raises DuplicateTaskIdFound for an id that the DAG has, unless
    ``add_suffix_on_collision``.
    """

    is_mapped = False

    def __init__(
        self,
        group_id: str | None,
        prefix_group_id: bool = True,
        parent_group: TaskGroup | None = None,
        dag: DAG | None = None,
        default_args: dict[str, Any] | None = None,
        tooltip: str = "",
        ui_color: str = _DEFAULT_COLOR,
        ui_fgcolor: str = "#000",
        add_suffix_on_collision: bool = False,
        group_display_name: str = "",
    ) -> None:
        self.prefix_group_id = prefix_group_id
        self.default_args = dict(default_args or {})
        self.tooltip, self.ui_color, self.ui_fgcolor = tooltip, ui_color, ui_fgcolor
        self.group_display_name = group_display_name
        self.children: dict[str, DAGNode] = {}
        self.upstream_group_ids: set[str | None] = set()
        self.downstream_group_ids: set[str | None] = set()
        self.upstream_task_ids: set[str] = set()
        self.downstream_task_ids: set[str] = set()
        if group_id is None:
            self.dag, self.task_group = dag, None
            self._group_id: str | None = None
            self.used_group_ids: set[str] = set()
            return
        validate_id(group_id, "group_id", group=True)
        parent = parent_group or scope.current_group(dag)
        if parent is None:
            raise RuntimeError(
                f"Task group {group_id!r} belongs to no DAG: make it inside `with DAG(...)`, or give dag=…."
            )
        self.dag = dag or parent.dag
        self.task_group = parent
        self.used_group_ids = parent.used_group_ids
        self._group_id = self._free_id(group_id) if add_suffix_on_collision else group_id
        if self.group_id in self.used_group_ids or (self.dag is not None and self.dag.has_task(self.group_id or "")):
            raise DuplicateTaskIdFound(
                f"The id {self.group_id!r} is taken in this DAG: give the group another one, or "
                "add_suffix_on_collision=True."
            )
        self.used_group_ids.add(self.group_id or "")
        parent.add(self)

    @classmethod
    def create_root(cls, dag: DAG) -> TaskGroup:
        return cls(group_id=None, dag=dag)

    @property
    def is_root(self) -> bool:
        return self._group_id is None

    @property
    def parent_group(self) -> TaskGroup | None:
        return self.task_group

    @property
    def group_id(self) -> str | None:
        if self.task_group is not None and self._group_id is not None:
            return self.task_group.child_id(self._group_id)
        return self._group_id

    @property
    def node_id(self) -> str:
        return self.group_id or ""

    @property
    def node_prefix(self) -> str:
        return f"{self.group_id}." if self.prefix_group_id and self.group_id else ""

    @property
    def display_name(self) -> str:
        return self.group_display_name or self.label

    def child_id(self, label: str) -> str:
        """The full id of a task or group of this group."""
        return f"{self.node_prefix}{label}"

    def _free_id(self, label: str) -> str:
        taken = self.used_group_ids | (set(self.dag.task_dict) if self.dag is not None else set())
        parent = self.task_group
        assert parent is not None
        if parent.child_id(label) not in taken:
            return label
        base = re.split(r"__\d+$", label)[0]
        number = 1
        while parent.child_id(f"{base}__{number}") in taken:
            number += 1
        return f"{base}__{number}"

    def add(self, node: DAGNode) -> DAGNode:
        """Takes a task or group in. Raises TaskAlreadyInTaskGroup, DuplicateTaskIdFound."""
        current = node.task_group
        if current is not None and current is not self and node.node_id in current.children:
            raise TaskAlreadyInTaskGroup(node.node_id, current.group_id, self.group_id or "")
        node.task_group = self
        key = node.node_id
        if key in self.children and self.children[key] is not node:
            raise DuplicateTaskIdFound(
                f"The id {key!r} was added to the DAG already: every task needs an id of its own in a DAG."
            )
        self.children[key] = node
        return node

    def __enter__(self) -> TaskGroup:
        scope.push_group(self)
        return self

    def __exit__(self, *error: Any) -> None:
        scope.pop_group()

    def iter_tasks(self) -> Iterator[Any]:
        """All tasks in the group and its subgroups, in definition order."""
        for child in self.children.values():
            if isinstance(child, TaskGroup):
                yield from child.iter_tasks()
            else:
                yield child

    def iter_groups(self) -> Iterator[TaskGroup]:
        """The group itself, then its subgroups at any depth."""
        yield self
        for child in self.children.values():
            if isinstance(child, TaskGroup):
                yield from child.iter_groups()

    def has_task(self, task: Any) -> bool:
        return any(child is task for child in self.iter_tasks())

    def get_child_by_label(self, label: str) -> DAGNode:
        return self.children[self.child_id(label)]

    def get_task_group_dict(self) -> dict[str | None, TaskGroup]:
        return {group.group_id: group for group in self.iter_groups()}

    @property
    def roots(self) -> Sequence[Any]:
        return self.get_roots()

    @property
    def leaves(self) -> Sequence[Any]:
        return self.get_leaves()

    def get_roots(self) -> list[Any]:
        """Tasks with no upstream inside the group."""
        inside = {task.task_id for task in self.iter_tasks()}
        return [task for task in self.iter_tasks() if task.upstream_task_ids.isdisjoint(inside)]

    def get_leaves(self) -> list[Any]:
        """Tasks with no downstream inside the group; in place of teardowns, the work before them."""
        tasks = {task.task_id: task for task in self.iter_tasks()}
        found: dict[str, Any] = {}
        pending = [task for task in tasks.values() if task.downstream_task_ids.isdisjoint(tasks)]
        while pending:
            task = pending.pop(0)
            if not task.is_teardown or task.on_failure_fail_dagrun:
                found[task.task_id] = task
                continue
            pending.extend(
                tasks[upstream]
                for upstream in sorted(task.upstream_task_ids & tasks.keys())
                if not tasks[upstream].is_setup
            )
        return list(found.values())

    def _last_tasks(self) -> Sequence[Any]:
        """Those of a group without tasks are the ones before it: `a >> empty >> b` puts a before b."""
        if any(True for _ in self.iter_tasks()) or self.dag is None:
            return self.leaves
        groups = self.dag.task_group_dict
        before = [self.dag.get_task(task_id) for task_id in sorted(self.upstream_task_ids)]
        return before + [
            task for group_id in self.upstream_group_ids if group_id for task in groups[group_id]._last_tasks()
        ]

    def update_relative(self, other: Any, upstream: bool = True, edge_modifier: Any = None) -> None:
        """``other`` was connected to this group (``upstream``: it comes before)."""
        self._note_relative(other, upstream=upstream)

    def _note_relative(self, far: Any, *, upstream: bool) -> None:
        if isinstance(far, TaskGroup):
            (self.upstream_group_ids if upstream else self.downstream_group_ids).add(far.group_id)
            return
        ids = self.upstream_task_ids if upstream else self.downstream_task_ids
        ids.update(task.task_id for task in (far.leaves if upstream else far.roots))

    def get_closest_mapped_task_group(self) -> Any:
        group: TaskGroup | None = self
        while group is not None and not group.is_mapped:
            group = group.task_group
        return group

    def iter_mapped_task_groups(self) -> Iterator[Any]:
        group: TaskGroup | None = self
        while group is not None:
            if group.is_mapped:
                yield group
            group = group.task_group

    def as_setup(self) -> Any:
        raise AirflowException("A task group cannot be a setup; mark its tasks.")

    def __repr__(self) -> str:
        return f"<TaskGroup: {self.group_id}>"


class MappedTaskGroup(TaskGroup):
    """A group of which there is one instance for each element of ``expand_input``."""

    is_mapped = True

    def __init__(self, *, expand_input: ExpandInput, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.expand_input = expand_input
        if self.task_group is not None and self.task_group.get_closest_mapped_task_group() is not None:
            raise NotImplementedError(
                f"Group {self.group_id!r} is mapped inside another mapped group, which is not supported."
            )

    def __exit__(self, *error: Any) -> None:
        for source, _ in self.expand_input.iter_references():
            if not self.has_task(source):
                self.set_upstream(source)
        super().__exit__(*error)


class MappedArgument(Referencing):
    """An argument of a mapped group's function: the element of this instance, known when a task of it runs."""

    def __init__(self, expand_input: ExpandInput, key: str) -> None:
        self._input, self._key = expand_input, key

    def iter_references(self) -> Iterator[Any]:
        yield from self._input.iter_references()

    def __getitem__(self, item: Any) -> Any:
        raise TypeError(
            "The argument of a mapped group is not known while the DAG file is read: index it inside a task."
        )

    def resolve(self, context: Mapping[str, Any]) -> Any:
        values, _ = self._input.resolve(context, context["ti"].map_index)
        return values[self._key]

    def __repr__(self) -> str:
        return f"MappedArgument({self._key!r})"
