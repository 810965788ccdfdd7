"""Which task instances, of all runs?"""

from __future__ import annotations

from django.http import HttpResponse

from scheduler_app import access
from scheduler_app.engine import states
from scheduler_app.queries import page_task_list

from . import task_list_bulk
from .failures import CHIPS
from .page import Ask, page, page_number

STATES = tuple(state or "none" for state in states.TASK_STATES)


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "task")
    asked = {name: ask.request.GET.get(name, "") for name in ("q", "task", "pool")}
    state = ask.request.GET.get("state", "")
    state = state if state in STATES else ""
    hours = ask.request.GET.get("hours", "")
    hours = hours if hours in page_task_list.SPANS else "24"
    ended = state in states.FINISHED
    wanted = page_task_list.TaskFilter(
        dag=asked["q"],
        task=asked["task"],
        pool=asked["pool"],
        state=state,
        since=ask.now - page_task_list.SPANS[hours] if ended else None,
    )
    result = page_task_list.task_page(
        access.task_instances(ask.actor),
        access.dags(ask.actor),
        access.runs(ask.actor),
        wanted,
        page_number(ask.request),
    )
    context = {
        "section": "scheduler:runs",
        "result": result,
        "state": state,
        "states": STATES,
        "hours": hours,
        "spans": CHIPS if ended else (),
        "filtered": any(asked.values()) or state,
        "most": page_task_list.RUNS,
        "deeds": list(task_list_bulk.labels()) if ask.can("change", "task") else [],
        **asked,
    }
    return ask.show("tasks.html", context)
