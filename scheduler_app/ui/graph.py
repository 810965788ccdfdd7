"""How does it hang together? The graph of a DAG, with the states of one run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from django.http import HttpResponse

from scheduler_app import access
from scheduler_app.engine.dag import Dag, from_doc
from scheduler_app.models import DagRun, DagVersion
from scheduler_app.queries import page_dag

from . import grid, layout, run
from .page import Ask, page
from .worst import worst

#: From so many tasks on the groups at the top start closed.
CLOSE_FROM: Final = 60
NODE_HEIGHT: Final = 38.0
LONGEST_LABEL: Final = 32
#: signs of the longest word for a state, "Up for reschedule"
LONGEST_STATE: Final = 17
MAPPED: Final = " ×n"
CACHED: Final = 128


@dataclass(frozen=True, slots=True)
class Node:
    id: str
    label: str
    sub: str
    #: tasks that it stands for: itself, or all those of a closed group
    tasks: tuple[str, ...]
    is_group: bool
    rule: str


@dataclass(frozen=True, slots=True)
class Drawing:
    picture: layout.Picture
    nodes: dict[str, Node]


@page
def show(ask: Ask, dag_id: str) -> HttpResponse:
    dag = ask.dag(dag_id)
    wanted = ask.request.GET.get("run", "")
    runs = access.runs(ask.actor).filter(dag_id=dag_id).order_by("-run_after", "-id").defer("conf")
    choices = list(runs[:25])
    chosen = next((one for one in choices if one.run_id == wanted), None)
    if chosen is None:
        chosen = run.find(ask, dag_id, wanted) if wanted else next(iter(choices), None)
    version = dag.latest_version
    if chosen is not None and chosen.dag_version_id and chosen.dag_version_id != dag.latest_version_id:
        version = DagVersion.objects.filter(pk=chosen.dag_version_id).first() or version
    return ask.show(
        "dag_graph.html",
        {"section": "scheduler:dags", "tab": "graph", "dag": dag, "choices": choices, **_context(ask, version, chosen)},
    )


@page
def of_run(ask: Ask, dag_id: str, run_id: str) -> HttpResponse:
    found = run.find(ask, dag_id, run_id)
    version = DagVersion.objects.filter(pk=found.dag_version_id or found.dag.latest_version_id).first()
    return ask.show(
        "run_graph.html", {"section": "scheduler:runs", "dag": found.dag, "run": found, **_context(ask, version, found)}
    )


def _context(ask: Ask, version: DagVersion | None, chosen: DagRun | None) -> dict[str, Any]:
    if version is None:
        return {"drawing": None, "chosen": chosen}
    dag = from_doc(version.document)
    closed = _closed(ask.request.GET.get("closed"), dag)
    drawing = drawing_of(str(version.pk), dag, closed)
    states = page_dag.task_states([chosen.pk]) if chosen else {}
    return {
        "chosen": chosen,
        "drawing": drawing,
        "closed": ",".join(sorted(closed)),
        "boxes": [_box(box, drawing.nodes[box.id], chosen, states, closed) for box in drawing.picture.boxes],
        "wires": drawing.picture.wires,
    }


def _closed(text: str | None, dag: Dag) -> frozenset[str]:
    """The closed groups: those that the address names, else those at the top of a large DAG."""
    known = {group.group_id for group in dag.groups if group.group_id}
    if text is not None:
        return frozenset(text.split(",")) & known
    if len(dag.tasks) < CLOSE_FROM:
        return frozenset()
    return frozenset(group.group_id for group in dag.groups if group.group_id and group.parent is None)


_drawings: OrderedDict[tuple[str, frozenset[str]], Drawing] = OrderedDict()
_lock = Lock()


def drawing_of(version: str, dag: Dag, closed: frozenset[str]) -> Drawing:
    """The placed graph of a version, from a bounded cache: a version never changes."""
    key = (version, closed)
    with _lock:
        if key in _drawings:
            _drawings.move_to_end(key)
            return _drawings[key]
    drawn = draw(dag, closed)
    with _lock:
        _drawings[key] = drawn
        while len(_drawings) > CACHED:
            _drawings.popitem(last=False)
    return drawn


def draw(dag: Dag, closed: frozenset[str]) -> Drawing:
    """Nodes for tasks, boxes for open groups, one node for each closed group."""
    parents, members = _tree(dag)
    stands = {task.task_id: _representative(task.task_id, parents, closed) for task in dag.tasks}
    nodes: dict[str, Node] = {}
    for task in dag.tasks:
        node = stands[task.task_id]
        if node == task.task_id:
            badge = MAPPED if task.mapped else ""
            label = (task.task_display_name or task.task_id).removeprefix(f"{parents.get(node)}.")
            rule = "" if task.trigger_rule == "all_success" else task.trigger_rule
            nodes[node] = Node(node, label + badge, rule or task.shown_operator, (node,), False, rule)
        elif node not in nodes:
            tasks = tuple(one for one, other in stands.items() if other == node)
            nodes[node] = Node(node, members[node], f"{len(tasks)} tasks", tasks, True, "")
    sizes = {node: (_width(one), NODE_HEIGHT) for node, one in nodes.items()}
    edges = [
        (stands[task.task_id], stands[below])
        for task in dag.tasks
        for below in task.downstream
        if below in stands and stands[task.task_id] != stands[below]
    ]
    shown = {node: parents.get(node) for node in sizes}
    for group in list(shown.values()):
        while group is not None and group not in shown:
            shown[group] = parents.get(group)
            tasks = tuple(task for task in stands if group in _ancestors(task, parents))
            nodes[group] = Node(group, members[group], "", tasks, True, "")
            group = parents.get(group)
    return Drawing(layout.arrange(sizes, shown, edges), nodes)


def _tree(dag: Dag) -> tuple[dict[str, str | None], dict[str, str]]:
    """The group of each task and group, and the label of each group."""
    parents: dict[str, str | None] = {}
    labels: dict[str, str] = {}
    for group in dag.groups:
        if group.group_id is not None:
            labels[group.group_id] = (group.display_name or group.group_id).removeprefix(f"{group.parent}.")
        for child in group.children:
            parents[child.get("task") or child["group"]] = group.group_id
    return parents, labels


def _ancestors(node: str, parents: dict[str, str | None]) -> Iterable[str]:
    group = parents.get(node)
    while group is not None:
        yield group
        group = parents.get(group)


def _representative(task: str, parents: dict[str, str | None], closed: frozenset[str]) -> str:
    """The outermost closed group around a task, or the task itself."""
    return next((group for group in reversed(list(_ancestors(task, parents))) if group in closed), task)


def _width(node: Node) -> float:
    """Wide enough for its words, and for any state that is written below them later, with a number for several."""
    states = LONGEST_STATE + (5 if node.is_group or node.label.endswith(MAPPED) else 0)
    return 30.0 + 6.9 * min(LONGEST_LABEL, max(len(node.label), int(max(len(node.sub), states) * 0.86)))


def _box(
    box: layout.Box,
    node: Node,
    chosen: DagRun | None,
    states: dict[tuple[int, str], dict[str, int]],
    closed: frozenset[str],
) -> dict[str, Any]:
    found: dict[str, int] = {}
    for task in node.tasks if chosen else ():
        for state, count in states.get((chosen.pk, task), {}).items():
            found[state] = found.get(state, 0) + count
    return {
        "box": box,
        "node": node,
        "label": node.label if len(node.label) <= LONGEST_LABEL else node.label[: LONGEST_LABEL - 1] + "…",
        "state": worst(found) if found else "",
        "count": sum(found.values()),
        "toggle": grid.toggled(closed, box.id),
        "is_open": box.is_group,
    }
