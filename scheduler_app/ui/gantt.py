"""What took so long? The tries of a run's tasks on one line of time, waiting apart from running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from django.utils.formats import date_format

from scheduler_app import access
from scheduler_app.engine import states
from scheduler_app.models import DagRun
from scheduler_app.models.graphs import graphs_of
from scheduler_app.queries import page_gantt, page_run
from scheduler_app.queries.page_gantt import Row

from . import run as run_page
from .page import Ask, page
from .time_axis import Axis


@dataclass(frozen=True, slots=True)
class Bar:
    """A piece of a row: ``state`` None while it waited. Places in percent."""

    left: float
    width: float
    seconds: float
    number: int
    state: str | None


@dataclass(frozen=True, slots=True)
class Line:
    row: Row
    bars: list[Bar]
    #: on the critical path
    critical: bool
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Path:
    """The chain of tasks that the run's length comes from, first to last."""

    rows: list[Row]
    seconds: float
    waited: float


@page
def show(ask: Ask, dag_id: str, run_id: str) -> HttpResponse:
    ask.need("view", "task")
    # before anything is read: a change that comes in between is then found by the first poll
    pulse = page_run.run_pulse(access.runs(ask.actor), dag_id, run_id)
    run = run_page.find(ask, dag_id, run_id)
    context = {
        "section": "scheduler:runs",
        "tab": "gantt",
        "dag": run.dag,
        "run": run,
        "token": pulse.token if pulse else "",
    }
    return ask.show("run_gantt.html", context | chart(run, ask.now))


def chart(run: DagRun, now: datetime) -> dict[str, Any]:
    """The rows with their bars, the axis and the critical path. At most four queries."""
    rows, left = page_gantt.rows(run.pk)
    pieces = {row.id: _pieces(row, now) for row in rows}
    intervals = [(start, end) for found in pieces.values() for start, end, _number, _state in found]
    if not intervals:
        return {"lines": [], "left_out": left}
    axis = Axis(intervals)
    graph = graphs_of([run.dag_version_id]).get(run.dag_version_id) if run.dag_version_id else None
    path = critical_path(rows, graph.upstream if graph else {}, now)
    on_path = {row.id for row in path.rows} if path else set()
    lines = [
        Line(
            row,
            [_bar(axis, *piece) for piece in pieces[row.id]],
            row.id in on_path,
            row.begin,
            None if row.state in states.WITH_PROCESS else row.tries[-1].end,
        )
        for row in rows
        if pieces[row.id]
    ]
    return {
        "lines": lines,
        "left_out": left,
        "folds": axis.folds,
        "marks": [(place, _mark(moment, axis.step())) for place, moment in axis.marks()],
        "path": path,
    }


def _pieces(row: Row, now: datetime) -> list[tuple[datetime, datetime, int, str | None]]:
    """(from, to, try, state): what waited has no state."""
    found: list[tuple[datetime, datetime, int, str | None]] = []
    for one in row.tries:
        live = one is row.tries[-1] and one.state in states.UNFINISHED
        if one.start is None:
            if one.due is not None and live and one.state in (states.SCHEDULED, states.QUEUED):
                found.append((one.due, max(one.due, now), one.number, None))
            continue
        if one.due is not None and one.due < one.start:
            found.append((one.due, one.start, one.number, None))
        end = one.end or (now if live else one.start)
        found.append((one.start, max(one.start, end), one.number, one.state or "none"))
    return found


def _bar(axis: Axis, start: datetime, end: datetime, number: int, state: str | None) -> Bar:
    left = axis.at(start)
    return Bar(left, axis.at(end) - left, (end - start).total_seconds(), number, state)


def _mark(moment: datetime, step: int) -> str:
    pattern = "H:i:s" if step < 60 else "H:i" if step < 86400 else "M j"
    return date_format(timezone.localtime(moment), pattern)


def critical_path(rows: Sequence[Row], upstream: Mapping[str, Sequence[str]], now: datetime) -> Path | None:
    """From the task that ended last back to each one's upstream that ended last before it began; None for none."""
    begun = [row for row in rows if row.begin is not None]
    if not begun:
        return None
    of_task: dict[str, list[Row]] = {}
    for row in begun:
        of_task.setdefault(row.task_id, []).append(row)

    def end(row: Row) -> datetime:
        return row.tries[-1].end or now

    chain = [max(begun, key=end)]
    while True:
        first = chain[0]
        before = [
            row
            for task_id in upstream.get(first.task_id, ())
            for row in of_task.get(task_id, ())
            if first.begin is not None and end(row) <= first.begin
        ]
        if not before:
            break
        chain.insert(0, max(before, key=end))
    whole = (end(chain[-1]) - (chain[0].begin or now)).total_seconds()
    ran = sum((end(row) - (row.begin or now)).total_seconds() for row in chain)
    return Path(chain, whole, max(0.0, whole - ran))
