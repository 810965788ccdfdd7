"""Clear task instances so that they run again: an exact preview, then the deed, which refuses if the set changed."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler_app.actions import clear, runs, selection
from scheduler_app.actions.errors import Conflict

from . import selection_form
from .page import Ask, deed, page


@login_required
def form(request: HttpRequest, dag_id: str) -> HttpResponse:
    return (_act if request.method == "POST" else _preview)(request, dag_id=dag_id)


@page
def _preview(ask: Ask, dag_id: str) -> HttpResponse:
    return _show(ask, dag_id, "")


def _show(ask: Ask, dag_id: str, problem: str) -> HttpResponse:
    ask.need("change", "task")
    asked = ask.request.POST if problem else ask.request.GET
    toggles = selection_form.TASK_TOGGLES if asked.get("task") else selection_form.RUN_TOGGLES
    wanted = selection_form.wanted(dag_id, asked, [name for name, _label in toggles])
    rows = selection.picked(ask.actor, wanted, "dag_run")
    return ask.show(
        "change.html",
        {
            "section": "scheduler:dags",
            "dag": ask.dag(dag_id),
            "deed": "clear",
            "title": _("Clear %(what)s") % {"what": asked.get("task") or asked["run"]},
            "consequence": _("Each of these runs again, as if it had never run. Its former tries and logs stay."),
            "asked": asked,
            "toggles": [(name, label, bool(asked.get(name))) for name, label in toggles],
            "preview": selection_form.Preview(rows),
            "button": ngettext("Clear %(n)s task", "Clear %(n)s tasks", len(rows)) % {"n": len(rows)},
            "problem": problem,
        },
        status=409 if problem else 200,
    )


@deed
def _act(ask: Ask, dag_id: str) -> HttpResponse:
    asked = ask.request.POST
    expect = selection_form.expected(asked)
    note = asked.get("note", "").strip() or None
    try:
        if asked.get("task"):
            wanted = selection_form.wanted(dag_id, asked, [name for name, _label in selection_form.TASK_TOGGLES])
            clear.clear(ask.actor, wanted, ask.now, expect=expect, note=note)
        else:
            failed = bool(asked.get("only_failed"))
            run_id = asked.get("run", "")
            runs.clear_run(ask.actor, dag_id, run_id, ask.now, only_failed=failed, note=note, expect=expect)
    except Conflict as error:
        return _show(ask, dag_id, str(error))
    messages.success(
        ask.request, ngettext("%(n)s task was cleared.", "%(n)s tasks were cleared.", len(expect)) % {"n": len(expect)}
    )
    return redirect("scheduler:run", dag_id=dag_id, run_id=asked["run"])
