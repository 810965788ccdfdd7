"""What is behind this cell? The panel beside the grid: one task instance in short, and the way to all of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.http import Http404, HttpResponse

from scheduler_app import access
from scheduler_app.queries import page_log, page_task, page_why

from . import log, task
from .jobs import lease
from .page import Ask, page
from .worst import worst

#: Lines of its log.
TAIL = 15


@page
def show(ask: Ask, dag_id: str, run_id: str, task_id: str) -> HttpResponse:
    return ask.show("part/cell.html", context(ask, dag_id, run_id, task_id))


def context(ask: Ask, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
    """What the panel shows; of a mapped task the instance that a person must see first. Raises Http404."""
    ask.need("view", "task")
    of_index = page_task.states_by_index(access.task_instances(ask.actor), dag_id, run_id, task_id)
    first = next((index for index, state in of_index.items() if state == worst(of_index.values())), None)
    instance = task.find(ask, dag_id, run_id, task_id, first)
    part = page_log.read_part(log.log_of(instance, instance.try_number)) if instance.try_number else None
    why = page_why.why_task(instance, ask.now, lease(), access.task_instances(ask.actor))
    return {
        "dag": instance.dag_run.dag,
        "run": instance.dag_run,
        "ti": instance,
        "tally": Counter(of_index.values()).most_common() if len(of_index) > 1 else [],
        "why": why,
        "tail": part.lines[-TAIL:] if part else [],
    }


def chosen(ask: Ask, dag_id: str) -> dict[str, Any]:
    """The panel of the cell that the grid's address names (``?cell=<run>/<task>``); empty for none."""
    run_id, _slash, task_id = ask.request.GET.get("cell", "").rpartition("/")
    if not run_id:
        return {}
    try:
        return context(ask, dag_id, run_id, task_id)
    except Http404:
        return {}
