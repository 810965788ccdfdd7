"""Which runs? Of all DAGs, or of one."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from scheduler_app import access
from scheduler_app.engine import states
from scheduler_app.queries import page_runs
from scheduler_app.queries.page_runs import RunFilter

from . import run_bulk
from .page import Ask, page, page_number
from .run_filter import day_of, wanted


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
    asked = wanted(ask.request.GET, dag_id)
    return {
        "result": page_runs.run_page(access.runs(ask.actor), asked, page_number(ask.request)),
        "q": asked.text,
        "state": asked.state,
        "type": asked.run_type,
        "day": day_of(ask.request.GET),
        "states": states.RUN_STATES,
        "types": page_runs.TYPES,
        "filtered": asked != RunFilter(dag_id=dag_id),
        "deeds": [(name, one.label) for name, one in run_bulk.DEEDS.items() if ask.can(one.verb, "run")],
    }
