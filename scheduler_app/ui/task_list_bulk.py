"""Clear or mark ticked task instances of many runs: first what it is about, then the deed, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler_app import access
from scheduler_app.actions import clear, mark, selection
from scheduler_app.actions.errors import Invalid
from scheduler_app.models import TaskInstance

from . import batches
from .page import Ask, deed, page

#: Task instances that the preview names.
NAMED: Final = 200


@dataclass(frozen=True, slots=True)
class Deed:
    label: Any
    consequence: Any
    act: Callable[[access.Actor, TaskInstance, datetime], object]


#: What can be done to many, in the order of the buttons.
DEEDS: Final = {
    "clear": Deed(
        gettext_lazy("Clear"),
        gettext_lazy("Each of these runs again, and so do those after it that failed for it. Others stay as they are."),
        lambda actor, one, now: clear.clear(actor, _with_followers(one), now),
    ),
    "success": Deed(
        gettext_lazy("Mark as success"),
        gettext_lazy("They count as done: tasks after them become eligible, and those that failed for them run again."),
        lambda actor, one, now: mark.mark(actor, _alone(one), "success", now),
    ),
    "failed": Deed(
        gettext_lazy("Mark as failed"),
        gettext_lazy("They count as failed: tasks after them that need their success will not run."),
        lambda actor, one, now: mark.mark(actor, _alone(one), "failed", now),
    ),
}


def _alone(one: TaskInstance) -> selection.Wanted:
    return selection.Wanted(one.dag_id, tasks=[(one.task_id, one.map_index)], runs=[one.dag_run.run_id])


def _with_followers(one: TaskInstance) -> selection.Wanted:
    """A failed one with what failed for it; any other alone, since those after it hold no failure of its making."""
    if one.state not in ("failed", "upstream_failed"):
        return _alone(one)
    tasks = [(one.task_id, one.map_index)]
    return selection.Wanted(one.dag_id, tasks=tasks, runs=[one.dag_run.run_id], downstream=True, only_failed=True)


def labels() -> Iterator[tuple[str, Any]]:
    return ((name, one.label) for name, one in DEEDS.items())


@login_required
def form(request: HttpRequest) -> HttpResponse:
    return (_act if request.method == "POST" else _preview)(request)


@page
def _preview(ask: Ask) -> HttpResponse:
    name, chosen = _deed(ask, ask.request.GET)
    ids = batches.keys(ask.request.GET.getlist("ti"))[: batches.MOST]
    if not ids:
        raise Invalid("ti", _("Tick at least one task first."))
    rows = list(access.task_instances(ask.actor).filter(pk__in=ids).select_related("dag_run").order_by("-id"))
    shown, unnamed = batches.named(rows, NAMED)
    context = {
        "section": "scheduler:runs",
        "do": name,
        "deed": chosen,
        "rows": shown,
        "n": len(rows),
        "unnamed": unnamed,
        "ids": ",".join(str(row.pk) for row in rows),
        "back": ask.request.GET.get("next", ""),
    }
    return ask.show("task_list_bulk.html", context)


@deed
def _act(ask: Ask) -> HttpResponse:
    name, chosen = _deed(ask, ask.request.POST)
    state = batches.read(ask.request.POST, _tasks)
    part = batches.keys(batches.next_part(state))
    rows = access.task_instances(ask.actor, "change").filter(pk__in=part).select_related("dag_run")
    batches.act(
        state,
        {str(row.pk): row for row in rows},
        lambda row: chosen.act(ask.actor, row, ask.now),
        lambda row: f"{row}, {row.dag_run.run_id}",
    )
    words = batches.Words(str(chosen.label), _tasks)
    return batches.answer(ask, state, words, {"do": name}, reverse("scheduler:tasks"))


def _tasks(n: int) -> str:
    return ngettext("%(n)s task", "%(n)s tasks", n) % {"n": n}


def _deed(ask: Ask, asked: Any) -> tuple[str, Deed]:
    name = asked.get("do", "")
    if name not in DEEDS:
        raise Invalid("do", _("“do” must be one of: %(names)s.") % {"names": ", ".join(DEEDS)})
    ask.need("change", "task")
    return name, DEEDS[name]
