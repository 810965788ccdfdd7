"""What is broken right now? Failures grouped by error; one group with its tasks, to be cleared together."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler_app import access
from scheduler_app.actions import clear, selection
from scheduler_app.actions.errors import ActionError
from scheduler_app.engine import states
from scheduler_app.queries import page_failures
from scheduler_app.queries.page_failures import Failed, Group

from .page import Ask, deed, page

#: Tasks that a group shows, and that are cleared at once.
SHOWN: Final = 200
#: hours → label, in the order of the chips
CHIPS: Final = (("1", gettext_lazy("1 hour")), ("24", gettext_lazy("24 hours")), ("168", gettext_lazy("7 days")))


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "task")
    hours = _hours(ask.request.GET.get("hours", ""))
    return ask.show(
        "failures.html",
        {
            "section": "scheduler:failures",
            "groups": _groups(ask, hours),
            "hours": hours,
            "chips": CHIPS,
            "most": page_failures.NEWEST,
        },
    )


@page
def group(ask: Ask, key: str) -> HttpResponse:
    ask.need("view", "task")
    hours = _hours(ask.request.GET.get("hours", ""))
    found = next((one for one in _groups(ask, hours) if one.key == key), None)
    if found is None:
        raise Http404(_("No task fails like that any more. The failures of now: %(url)s") % {"url": _url(hours)})
    shown = found.members[:SHOWN]
    ended = [one for one in shown if one.state == states.FAILED]
    context = {
        "section": "scheduler:failures",
        "group": found,
        "shown": shown,
        "hours": hours,
        "ids": ",".join(str(one.id) for one in ended),
        "n": len(ended),
    }
    return ask.show("failure.html", context)


@deed
def clear_all(ask: Ask, key: str) -> HttpResponse:
    """Clears the tasks that the page showed and still are failed, with those after them that failed for it.

    Run by run, each in a transaction of its own: one that cannot be cleared keeps no other from it.
    """
    ask.need("change", "task")
    wanted = {int(part) for part in ask.request.POST.get("ids", "").split(",") if part.isdecimal() and len(part) < 19}
    hours = _hours(ask.request.POST.get("hours", ""))
    rows = access.task_instances(ask.actor, "change").filter(pk__in=sorted(wanted)[:SHOWN], state=states.FAILED)
    of_run: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for dag_id, run_id, task_id, map_index in rows.values_list("dag_id", "dag_run__run_id", "task_id", "map_index"):
        of_run.setdefault((dag_id, run_id), []).append((task_id, map_index))
    done, refused = 0, []
    for (dag_id, run_id), tasks in sorted(of_run.items()):
        picked = selection.Wanted(dag_id, tasks=tasks, runs=[run_id], downstream=True, only_failed=True)
        try:
            done += len(clear.clear(ask.actor, picked, ask.now).task_instances)
        except ActionError as error:
            refused.append(f"{dag_id}, {run_id}: {error}")
    return _told(ask, hours, done, len(wanted) - sum(map(len, of_run.values())), refused)


def _told(ask: Ask, hours: str, done: int, left: int, refused: list[str]) -> HttpResponse:
    messages.success(ask.request, ngettext("%(n)s task was cleared.", "%(n)s tasks were cleared.", done) % {"n": done})
    if left > 0:
        text = ngettext(
            "%(n)s was left alone: it is not failed any more.", "%(n)s were left alone: not failed any more.", left
        )
        messages.warning(ask.request, text % {"n": left})
    for text in refused[:3]:
        messages.error(ask.request, text)
    return redirect(_url(hours))


def _groups(ask: Ask, hours: str) -> list[Group]:
    since = ask.now - page_failures.SPANS[hours]
    found: list[Failed] = page_failures.failures(access.task_instances(ask.actor), since)
    return page_failures.groups(found)


def _hours(text: str) -> str:
    return text if text in page_failures.SPANS else "24"


def _url(hours: str) -> str:
    return f"{reverse('scheduler:failures')}?hours={hours}"
