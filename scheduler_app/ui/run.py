"""What happened in this run? Its head, its tasks, and its hold."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _

from scheduler_app import access
from scheduler_app.engine import states
from scheduler_app.models import DagRun
from scheduler_app.queries import page_run, page_why

from . import task_bulk
from .jobs import lease
from .page import Ask, page, page_number


def find(ask: Ask, dag_id: str, run_id: str) -> DagRun:
    """The run that an address names. Raises Http404 when there is none, or the reader may not see it."""
    ask.need("view", "run")
    found = page_run.get_run(access.runs(ask.actor), dag_id, run_id)
    if found is None:
        raise Http404(_("%(dag)s has no run “%(run)s”, or you may not see it.") % {"dag": dag_id, "run": run_id})
    return found


@page
def show(ask: Ask, dag_id: str, run_id: str) -> HttpResponse:
    # before anything is read: a change that comes in between is then found by the first poll
    pulse = page_run.run_pulse(access.runs(ask.actor), dag_id, run_id)
    run = find(ask, dag_id, run_id)
    state = ask.request.GET.get("state")
    number = page_number(ask.request)
    tasks = page_run.run_tasks(run.pk, state=state, page=number)
    culprits = page_run.first_failed(run.pk) if run.state == states.FAILED else []
    shown = dict(tasks.counts).get(state or "", 0) if state else tasks.total
    return ask.show(
        "run.html",
        {
            "section": "scheduler:runs",
            "tab": "run",
            "dag": run.dag,
            "run": run,
            "tasks": tasks,
            "state_shown": state,
            "page": number,
            "pages": max(1, -(-shown // page_run.PAGE)),
            "usual": page_run.usual_seconds(dag_id) if run.state in ("running", "success") else None,
            "why": page_why.why_run(run, ask.now, lease(), access.task_instances(ask.actor)),
            "culprits": culprits[: page_run.CULPRITS],
            "more_culprits": len(culprits) > page_run.CULPRITS,
            "token": pulse.token if pulse else "",
            "deeds": [(name, label) for name, (label, _consequence) in task_bulk.DEEDS.items()],
        },
    )
