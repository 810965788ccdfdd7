"""Where did it break? Tasks by runs, one cell a task instance (the worst one of a mapped task or a closed group)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.http import HttpResponse

from scheduler_app import access
from scheduler_app.engine.dag import Dag, from_doc
from scheduler_app.models import DagRun
from scheduler_app.queries import page_dag
from scheduler_app.queries.page_dags import Bar

from . import cell
from .page import Ask, page
from .worst import worst

#: Choices for the number of runs.
COUNTS: Final = (25, 50, 100, 365)
#: Cells that one page shows at once; a larger grid starts with its groups closed.
CELLS: Final = 12_500
LEGEND: Final = (
    "success", "failed", "running", "queued", "scheduled", "up_for_retry", "upstream_failed", "skipped", "deferred",
    "none",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One row: a task, or a group with what the closed one stands for."""

    id: str
    label: str
    depth: int
    is_group: bool
    is_open: bool
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    run_id: str
    state: str
    count: int


@page
def show(ask: Ask, dag_id: str) -> HttpResponse:
    ask.need("view", "task")
    dag = ask.dag(dag_id)
    count = _count(ask.request.GET.get("runs", ""))
    before = ask.request.GET.get("before", "")
    found = access.runs(ask.actor).filter(dag_id=dag_id).defer("conf").order_by("-run_after", "-id")
    if before.isdecimal() and len(before) < 16:
        found = found.filter(pk__lt=int(before))
    runs = list(found[: count + 1])
    older, runs = len(runs) > count, runs[:count][::-1]
    spec = from_doc(dag.latest_version.document) if dag.latest_version else None
    closed = _closed(ask.request.GET.get("closed"), spec, len(runs)) if spec else frozenset()
    lines = rows(spec, closed) if spec else []
    states = page_dag.task_states(one.pk for one in runs)
    return ask.show(
        "dag_grid.html",
        {
            "section": "scheduler:dags",
            "tab": "grid",
            "dag": dag,
            "bars": bars(runs, ask),
            "rows": [(line, toggled(closed, line.id), cells(line, runs, states)) for line in lines],
            "counts": COUNTS,
            "count": count,
            "older": runs[0].pk if older and runs else None,
            "newer": bool(before),
            "legend": LEGEND,
        }
        | cell.chosen(ask, dag_id),
    )


def _count(text: str) -> int:
    return int(text) if text in {str(one) for one in COUNTS} else COUNTS[0]


def _closed(text: str | None, dag: Dag, runs: int) -> frozenset[str]:
    """The closed groups: those that the address names, else the top ones of a grid with more than :data:`CELLS`."""
    if text is not None:
        return frozenset(text.split(","))
    if len(dag.tasks) * runs <= CELLS:
        return frozenset()
    return frozenset(group.group_id for group in dag.groups if group.group_id is not None and group.parent is None)


def toggled(closed: frozenset[str], group: str) -> str:
    """The address's list of closed groups with one more or one fewer; "-" says that all are open."""
    return ",".join(sorted(closed - {"-"} ^ {group})) or "-"


def bars(runs: list[DagRun], ask: Ask) -> list[Bar]:
    """The durations above the columns."""
    seconds = [((one.end_date or ask.now) - one.start_date).total_seconds() if one.start_date else None for one in runs]
    longest = max((one for one in seconds if one), default=0.0) or 1.0
    return [
        Bar(one.run_id, one.state, one.run_type, one.run_after, long, max(0.0, (long or 0.0) / longest))
        for one, long in zip(runs, seconds, strict=True)
    ]


def rows(dag: Dag, closed: frozenset[str]) -> list[Line]:
    """The tree of groups and tasks in the order of the file; a closed group hides what it holds."""
    groups = {group.group_id: group for group in dag.groups}
    if None not in groups:
        return [
            Line(task.task_id, task.task_display_name or task.task_id, 0, False, False, (task.task_id,))
            for task in dag.tasks
        ]
    tasks = dag.task_dict

    def members(group_id: str | None) -> tuple[str, ...]:
        found: list[str] = []
        for child in groups[group_id].children:
            found.extend([child["task"]] if "task" in child else members(child["group"]))
        return tuple(found)

    def walk(group_id: str | None, depth: int) -> list[Line]:
        lines: list[Line] = []
        for child in groups[group_id].children:
            if "task" in child:
                name = child["task"]
                label = (tasks[name].task_display_name or name).removeprefix(f"{group_id}.")
                lines.append(Line(name, label, depth, False, False, (name,)))
                continue
            name = child["group"]
            label = (groups[name].display_name or name).removeprefix(f"{group_id}.")
            lines.append(Line(name, label, depth, True, name not in closed, members(name)))
            lines.extend(walk(name, depth + 1) if name not in closed else [])
        return lines

    return walk(None, 0)


def cells(line: Line, runs: list[DagRun], states: Mapping[tuple[int, str], Mapping[str, int]]) -> list[Cell | None]:
    """One cell a run; None where the run has no such task."""
    found: list[Cell | None] = []
    for run in runs:
        tally: dict[str, int] = {}
        for task in line.tasks:
            for state, count in states.get((run.pk, task), {}).items():
                tally[state] = tally.get(state, 0) + count
        found.append(Cell(run.run_id, worst(tally), sum(tally.values())) if tally else None)
    return found
