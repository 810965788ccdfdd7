"""Mark task instances, or a whole run, as success or failed: the consequence first, then the deed."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler_app.actions import mark, runs
from scheduler_app.actions.errors import Conflict, Invalid
from scheduler_app.engine import states
from scheduler_app.models import TaskInstance
from scheduler_app.templatetags.scheduler_ui import state_label

from . import run, selection_form
from .page import Ask, deed, page

TOGGLES = selection_form.TASK_TOGGLES[:4]


@login_required
def form(request: HttpRequest, dag_id: str) -> HttpResponse:
    return (_act if request.method == "POST" else _preview)(request, dag_id=dag_id)


@page
def _preview(ask: Ask, dag_id: str) -> HttpResponse:
    return _show(ask, dag_id, "")


def _show(ask: Ask, dag_id: str, problem: str) -> HttpResponse:
    asked = ask.request.POST if problem else ask.request.GET
    state = _state(asked.get("state", ""))
    of_task = bool(asked.get("task"))
    ask.need("change", "task" if of_task else "run")
    rows = _of_task(ask, dag_id, asked, state) if of_task else _of_run(ask, dag_id, asked)
    word = state_label(state)
    context = {
        "section": "scheduler:dags",
        "dag": ask.dag(dag_id),
        "deed": "mark",
        "title": _("Mark %(what)s as %(state)s")
        % {"what": asked.get("task") or asked.get("run", ""), "state": word.lower()},
        "consequence": _consequence(of_task, state),
        "asked": asked,
        "toggles": [(name, label, bool(asked.get(name))) for name, label in TOGGLES] if of_task else [],
        "preview": selection_form.Preview(rows),
        "button": _("Mark as %(state)s") % {"state": word.lower()},
        "always": not of_task,
        "problem": problem,
    }
    return ask.show("change.html", context, status=409 if problem else 200)


@deed
def _act(ask: Ask, dag_id: str) -> HttpResponse:
    asked = ask.request.POST
    state = _state(asked.get("state", ""))
    reason = asked.get("note", "").strip() or None
    try:
        if asked.get("task"):
            wanted = selection_form.wanted(dag_id, asked, [name for name, _label in TOGGLES])
            expect = selection_form.expected(asked)
            done = len(mark.mark(ask.actor, wanted, state, ask.now, reason=reason, expect=expect))
            message = ngettext("%(n)s task was marked.", "%(n)s tasks were marked.", done) % {"n": done}
        else:
            runs.mark_run(ask.actor, dag_id, asked.get("run", ""), state, ask.now, reason=reason)
            message = _("The run was marked.")
    except Conflict as error:
        return _show(ask, dag_id, str(error))
    messages.success(ask.request, message)
    return redirect("scheduler:run", dag_id=dag_id, run_id=asked["run"])


def _state(text: str) -> str:
    if text not in (states.SUCCESS, states.FAILED):
        raise Invalid("state", _("Only success and failed can be marked here."))
    return text


def _of_task(ask: Ask, dag_id: str, asked: Any, state: str) -> list[TaskInstance]:
    wanted = selection_form.wanted(dag_id, asked, [name for name, _label in TOGGLES])
    return mark.would_change(ask.actor, wanted, state, "dag_run")


def _of_run(ask: Ask, dag_id: str, asked: Any) -> list[TaskInstance]:
    """The unfinished task instances, which the mark ends."""
    found = run.find(ask, dag_id, asked.get("run", ""))
    ended = [state for state in states.FINISHED if state]
    rows = TaskInstance.objects.filter(dag_run=found).exclude(state__in=ended).select_related("dag_run")
    return list(rows.order_by("id"))


def _consequence(of_task: bool, state: str) -> str:
    if of_task and state == states.SUCCESS:
        return _("They count as done: tasks after them become eligible, and those that had failed for them run again.")
    if of_task:
        return _("They count as failed: tasks after them that need their success will not run.")
    return _("What runs is stopped and gets this state; what has not begun is skipped. Tear-down tasks still run.")
