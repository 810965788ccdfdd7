"""The graph of a DAG, compiled once for each version: what the scheduler asks about tasks on its hot path.

Everything here is computed when the graph is built and never changes; a graph may be shared by threads and cached
by DAG version. Ids are task ids; tuples are in definition order of the DAG file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from scheduler_app.engine.dag import Dag, Group, Task
from scheduler_app.engine.mapping import literal_length, map_sources

#: Priorities are stored in a 32-bit column; Airflow clamps to the same bounds.
WEIGHT_MAX = 2**31 - 1
WEIGHT_MIN = -(2**31)


class Neighbourhood(NamedTuple):
    """What a partial look takes in after some tasks changed."""

    #: the changed tasks and those that may have waited for them: ``only`` of ``readiness.look``
    look_at: frozenset[str]
    #: tasks whose instances must be loaded: ``look_at`` and all that those depend on
    load: frozenset[str]
    #: it is a third of the graph or more: load everything instead
    wide: bool


class Graph:
    """A compiled DAG. ValueError names the cycle, or the edge that leads to an unknown task."""

    def __init__(self, dag: Dag) -> None:
        self.dag = dag
        self.tasks: dict[str, Task] = dag.task_dict
        self.downstream: dict[str, tuple[str, ...]] = {}
        for task in dag.tasks:
            self.downstream[task.task_id] = _known(task, self.tasks)
        self.upstream = _reversed(self.downstream)
        self.order = _topological(self.upstream, self.downstream)
        #: task id → its place in ``order``
        self.position = {task_id: place for place, task_id in enumerate(self.order)}
        self.roots = tuple(task_id for task_id, above in self.upstream.items() if not above)
        self.leaves = _leaves(self.tasks, self.downstream)
        #: tasks whose states decide the run: its leaves, or all that count where one failure is enough
        self.deciding = self.leaves if dag.run_state == "leaves" else tuple(_counting(self.tasks)) or self.leaves
        self.has_setups = any(task.is_setup for task in dag.tasks)
        self.setups_of = _paired(self.upstream, self.tasks, "is_teardown", "is_setup")
        self.teardowns_of = _paired(self.downstream, self.tasks, "is_setup", "is_teardown")
        #: task id → setups around it that are not its direct upstreams: they must have succeeded, whatever its rule
        self.scope_setups = self._scope_setups() if self.has_setups else {}
        self.groups: dict[str | None, Group] = {group.group_id: group for group in dag.groups}
        self.group_of = _group_of(dag.groups)
        #: task id → the mapped groups around it, outermost first (tasks in none are left out)
        self.map_groups = self._map_groups()
        #: tasks that have one instance for each element: mapped themselves, or in a mapped group
        self.mapped_tasks = frozenset(self.map_groups) | {task.task_id for task in dag.tasks if task.mapped is not None}
        #: mapped tasks whose length the file itself says: they are expanded whatever their rule says
        self.literal_lengths = self._literal_lengths()
        self.needs = self._needs()
        self.followers = _reversed(self.needs)
        # once more, along all that a look reads: the sources of a mapping come first even where no edge says so
        self.order = _topological(self.needs, self.followers)
        self.position = {task_id: place for place, task_id in enumerate(self.order)}
        self.weights = self._weights()
        #: task id → its direct upstreams that may skip their followers (tasks without one are left out)
        self.skippers = {
            task_id: tuple(up for up in above if self.tasks[up].can_skip_downstream)
            for task_id, above in self.upstream.items()
            if any(self.tasks[up].can_skip_downstream for up in above)
        }
        self.has_past_deps = any(task.depends_on_past or task.wait_for_downstream for task in dag.tasks)

    def mapped_ancestor(self, task_id: str) -> Group | None:
        """The innermost mapped group around a task."""
        chain = self.map_groups.get(task_id)
        return self.groups[chain[-1]] if chain else None

    def relatives(self, task_ids: Iterable[str], *, upstream: bool = False, downstream: bool = False) -> frozenset[str]:
        """These tasks and all that lie before and/or after them. KeyError for an unknown id."""
        found = set(task_ids)
        start = tuple(found)
        for edges in [self.upstream] * upstream + [self.downstream] * downstream:
            found |= _reach(start, edges)
        return frozenset(found)

    def neighbourhood(self, changed: Iterable[str]) -> Neighbourhood:
        """What a look must take in after these tasks changed. Ids that left the DAG are ignored."""
        look_at = {task_id for task_id in changed if task_id in self.tasks}
        for task_id in tuple(look_at):
            look_at.update(self.followers[task_id])
        load = set(look_at)
        for task_id in look_at:
            load.update(self.needs[task_id])
        return Neighbourhood(frozenset(look_at), frozenset(load), 3 * len(load) >= len(self.tasks))

    def _scope_setups(self) -> dict[str, tuple[str, ...]]:
        """A task is in a setup's scope when the setup lies above it and has no teardown, or one that lies below it."""
        found = {}
        for task_id, task in self.tasks.items():
            above = _reach((task_id,), self.upstream) if not task.is_teardown else set()
            setups = [s for s in above if self.tasks[s].is_setup and s not in self.upstream[task_id]]
            if not setups:
                continue
            below = _reach((task_id,), self.downstream)
            scoped = [s for s in setups if not self.teardowns_of[s] or below.intersection(self.teardowns_of[s])]
            if scoped:
                found[task_id] = tuple(sorted(scoped, key=self.position.__getitem__))
        return found

    def _map_groups(self) -> dict[str, tuple[str, ...]]:
        chains = {}
        for task_id in self.tasks:
            chain: list[str] = []
            group_id = self.group_of.get(task_id)
            while group_id is not None:
                group = self.groups[group_id]
                if group.mapped is not None:
                    chain.insert(0, group_id)
                group_id = group.parent
            if chain:
                chains[task_id] = tuple(chain)
        return chains

    def _literal_lengths(self) -> dict[str, int]:
        found = {}
        for task_id in self.mapped_tasks:
            documents = [self.groups[group_id].mapped for group_id in self.map_groups.get(task_id, ())]
            if self.tasks[task_id].mapped is not None:
                documents.append(self.tasks[task_id].mapped)
            length = literal_length(documents)
            if length is not None:
                found[task_id] = length
        return found

    def _needs(self) -> dict[str, tuple[str, ...]]:
        """Task id → every task whose instances its readiness is read from."""
        needs = {}
        for task_id, task in self.tasks.items():
            found = dict.fromkeys(self.upstream[task_id])
            found.update(dict.fromkeys(self.scope_setups.get(task_id, ())))
            group_ids = dict.fromkeys(self.map_groups.get(task_id, ()))
            if group_ids:
                # which indexes of an upstream in an inner group are one's own depends on that group's length
                group_ids.update(dict.fromkeys(g for up in tuple(found) for g in self.map_groups.get(up, ())))
            for mapped in [task.mapped, *(self.groups[group_id].mapped for group_id in group_ids)]:
                found.update(dict.fromkeys(source for source in map_sources(mapped) if source in self.tasks))
            needs[task_id] = tuple(found)
        return needs

    def _weights(self) -> dict[str, int]:
        below = _reach_masks(self.order[::-1], self.downstream, self.position)
        above = _reach_masks(self.order, self.upstream, self.position)
        by_weight: dict[int, int] = {}
        for task_id, task in self.tasks.items():
            by_weight[task.priority_weight] = by_weight.get(task.priority_weight, 0) | 1 << self.position[task_id]
        weights = {}
        for task_id, task in self.tasks.items():
            if task.weight_rule == "custom" and task.weight is not None:
                total = task.weight
            else:
                masks = {"downstream": below, "upstream": above}.get(task.weight_rule)
                relatives = masks[task_id] if masks is not None else 0
                total = task.priority_weight
                total += sum(weight * (mask & relatives).bit_count() for weight, mask in by_weight.items())
            weights[task_id] = max(WEIGHT_MIN, min(WEIGHT_MAX, total))
        return weights


def _known(task: Task, tasks: Mapping[str, Task]) -> tuple[str, ...]:
    for other in task.downstream:
        if other not in tasks:
            raise ValueError(f"Task {task.task_id!r} names {other!r} as downstream, but the DAG has no such task.")
    return tuple(dict.fromkeys(task.downstream))


def _reversed(edges: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    back: dict[str, list[str]] = {node: [] for node in edges}
    for node, others in edges.items():
        for other in others:
            back[other].append(node)
    return {node: tuple(others) for node, others in back.items()}


def _topological(upstream: Mapping[str, tuple[str, ...]], downstream: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    missing = {node: len(above) for node, above in upstream.items()}
    ready = [node for node, count in missing.items() if not count]
    for node in ready:  # grows while it is walked
        for other in downstream[node]:
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    if len(ready) < len(upstream):
        cycle = " -> ".join(_cycle({node for node, count in missing.items() if count}, upstream))
        raise ValueError(f"The DAG has a cycle: {cycle}. Remove one of these dependencies.")
    return tuple(ready)


def _cycle(nodes: set[str], upstream: Mapping[str, tuple[str, ...]]) -> list[str]:
    """One cycle among nodes that each have an upstream among them, in the direction of the edges."""
    path: list[str] = []
    node = min(nodes)
    while node not in path:
        path.append(node)
        node = next(other for other in upstream[node] if other in nodes)
    return [node, *reversed(path[path.index(node) :])]


def _leaves(tasks: Mapping[str, Task], downstream: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Tasks that decide the run's outcome: nothing that counts comes after them.

    A teardown does not count unless it asks to (``on_failure_fail_dagrun``); a DAG of teardowns alone falls back to
    plain leaves.
    """
    counts = _counting(tasks)
    leaves = tuple(task_id for task_id in counts if counts.keys().isdisjoint(downstream[task_id]))
    return leaves or tuple(task_id for task_id in tasks if not downstream[task_id])


def _counting(tasks: Mapping[str, Task]) -> dict[str, Task]:
    """Those whose failure means something for the run: no teardowns but those that ask to count."""
    return {key: task for key, task in tasks.items() if not task.is_teardown or task.on_failure_fail_dagrun}


def _paired(
    edges: Mapping[str, tuple[str, ...]], tasks: Mapping[str, Task], mine: str, theirs: str
) -> dict[str, tuple[str, ...]]:
    return {
        task_id: tuple(o for o in others if getattr(tasks[o], theirs)) if getattr(tasks[task_id], mine) else ()
        for task_id, others in edges.items()
    }


def _group_of(groups: Iterable[Group]) -> dict[str, str | None]:
    return {child["task"]: group.group_id for group in groups for child in group.children if "task" in child}


def _reach(start: Iterable[str], edges: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Everything beyond ``start``, without it unless a path leads back."""
    found: set[str] = set()
    queue = list(start)
    while queue:
        for other in edges[queue.pop()]:
            if other not in found:
                found.add(other)
                queue.append(other)
    return found


def _reach_masks(
    order: Iterable[str], edges: Mapping[str, tuple[str, ...]], position: Mapping[str, int]
) -> dict[str, int]:
    """Task id → bit set (by position) of all that is reached along ``edges``; ``order`` has targets first."""
    masks: dict[str, int] = {}
    for node in order:
        mask = 0
        for other in edges[node]:
            mask |= masks[other] | 1 << position[other]
        masks[node] = mask
    return masks
