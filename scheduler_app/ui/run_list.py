"""Which runs? Of all DAGs, or of one."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from scheduler_app import access
from scheduler_app.engine import states
from scheduler_app.queries import page_runs

from . import run_bulk
from .page import Ask, page, page_number


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "run")
    return ask.show("runs.html", {"section": "scheduler:runs", **_context(ask, "")})


@page
def of_dag(ask: Ask, dag_id: str) -> HttpResponse:
    ask.need("view", "run")
    context = {"section": "scheduler:dags", "tab": "runs", "dag": ask.dag(dag_id), **_context(ask, dag_id)}
    return ask.show("dag_runs.html", context)


def _context(ask: Ask, dag_id: str) -> dict[str, Any]:
    asked = {name: ask.request.GET.get(name, "") for name in ("q", "state", "type")}
    state = asked["state"] if asked["state"] in states.RUN_STATES else ""
    run_type = asked["type"] if asked["type"] in page_runs.TYPES else ""
    result = page_runs.run_page(
        access.runs(ask.actor),
        dag_id=dag_id,
        text=asked["q"],
        state=state,
        run_type=run_type,
        page=page_number(ask.request),
    )
    return {
        "result": result,
        "q": asked["q"],
        "state": state,
        "type": run_type,
        "states": states.RUN_STATES,
        "types": page_runs.TYPES,
        "filtered": any(asked.values()),
        "deeds": [(name, one.label) for name, one in run_bulk.DEEDS.items() if ask.can(one.verb, "run")],
    }
