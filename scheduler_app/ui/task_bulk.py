"""Clear or mark the ticked tasks of a run: exactly what changes is shown first, and done only if that still holds.

The ticked tasks are of one run, so the whole deed is one transaction, as for a single task.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler_app import access
from scheduler_app.actions import clear, mark, selection
from scheduler_app.actions.errors import Conflict, Invalid, Missing
from scheduler_app.models import TaskInstance

from . import batches, selection_form
from .page import Ask, deed, page

TOGGLES: Final = tuple(
    one for one in selection_form.TASK_TOGGLES if one[0] in ("upstream", "downstream", "only_failed")
)
#: deed → its word, in the order of the buttons, and what follows from it
DEEDS: Final = {
    "clear": (gettext_lazy("Clear"), gettext_lazy("Each of these runs again, as if it had never run.")),
    "success": (
        gettext_lazy("Mark as success"),
        gettext_lazy("They count as done: tasks after them become eligible, and those that failed for them run again."),
    ),
    "failed": (
        gettext_lazy("Mark as failed"),
        gettext_lazy("They count as failed: tasks after them that need their success will not run."),
    ),
}


@login_required
def form(request: HttpRequest, dag_id: str, run_id: str) -> HttpResponse:
    return (_act if request.method == "POST" else _preview)(request, dag_id=dag_id, run_id=run_id)


@page
def _preview(ask: Ask, dag_id: str, run_id: str) -> HttpResponse:
    return _show(ask, dag_id, run_id, ask.request.GET, "")


@deed
def _act(ask: Ask, dag_id: str, run_id: str) -> HttpResponse:
    asked = ask.request.POST
    name = _deed(ask, asked)
    wanted = _wanted(ask, dag_id, run_id, asked, name)
    expect, note = selection_form.expected(asked), asked.get("note", "").strip() or None
    try:
        if name == "clear":
            done = len(clear.clear(ask.actor, wanted, ask.now, expect=expect, note=note).task_instances)
            text = ngettext("%(n)s task was cleared.", "%(n)s tasks were cleared.", done)
        else:
            done = len(mark.mark(ask.actor, wanted, name, ask.now, expect=expect, reason=note))
            text = ngettext("%(n)s task was marked.", "%(n)s tasks were marked.", done)
    except Conflict as error:
        return _show(ask, dag_id, run_id, asked, str(error))
    messages.success(ask.request, text % {"n": done})
    return redirect("scheduler:run", dag_id=dag_id, run_id=run_id)


def _show(ask: Ask, dag_id: str, run_id: str, asked: Any, problem: str) -> HttpResponse:
    name = _deed(ask, asked)
    wanted = _wanted(ask, dag_id, run_id, asked, name)
    label, consequence = DEEDS[name]
    context = {
        "section": "scheduler:runs",
        "dag": ask.dag(dag_id),
        "run_id": run_id,
        "do": name,
        "label": label,
        "consequence": consequence,
        "ticked": _keys(asked),
        "toggles": [(toggle, text, bool(asked.get(toggle))) for toggle, text in _toggles(name)],
        "preview": selection_form.Preview(_rows(ask, wanted, name)),
        "problem": problem,
    }
    return ask.show("task_bulk.html", context, status=409 if problem else 200)


def _rows(ask: Ask, wanted: selection.Wanted, name: str) -> list[TaskInstance]:
    if name == "clear":
        return selection.picked(ask.actor, wanted, "dag_run")
    return mark.would_change(ask.actor, wanted, name, "dag_run")


def _deed(ask: Ask, asked: Any) -> str:
    name: str = asked.get("do", "")
    if name not in DEEDS:
        raise Invalid("do", _("“do” must be one of: %(names)s.") % {"names": ", ".join(DEEDS)})
    ask.need("change", "task")
    return name


def _toggles(name: str) -> list[tuple[str, Any]]:
    return [one for one in TOGGLES if name == "clear" or one[0] != "only_failed"]


def _keys(asked: Any) -> list[int]:
    ticked = batches.keys(asked.getlist("ti"))
    if not ticked:
        raise Invalid("ti", _("Tick at least one task first."))
    if len(ticked) > batches.MOST:
        raise Invalid("ti", _("At most %(n)s tasks at once.") % {"n": batches.MOST})
    return ticked


def _wanted(ask: Ask, dag_id: str, run_id: str, asked: Any, name: str) -> selection.Wanted:
    """The ticked tasks that the run still has, and how far around them. Raises Missing when there is none."""
    found = access.task_instances(ask.actor).filter(pk__in=_keys(asked), dag_id=dag_id, dag_run__run_id=run_id)
    tasks = [(task, index) for task, index in found.order_by("pk").values_list("task_id", "map_index")]
    if not tasks:
        shown = access.runs(ask.actor).filter(dag_id=dag_id, run_id=run_id).exists()
        raise Missing(_("The run has none of these tasks any more.") if shown else _("There is no such run."))
    around = {toggle: True for toggle, _text in _toggles(name) if asked.get(toggle)}
    return selection.Wanted(dag_id, tasks=tasks, runs=[run_id], **around)
