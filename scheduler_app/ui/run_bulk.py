"""Clear, mark or delete many runs: ticked ones, or all that match the list's filter. First what it is about, then the
deed, run by run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler_app import access
from scheduler_app.actions import runs
from scheduler_app.actions.errors import Invalid
from scheduler_app.models import DagRun
from scheduler_app.queries import page_runs

from . import batches, run_filter
from .page import Ask, deed, page

#: Runs that the preview names.
NAMED: Final = 200


@dataclass(frozen=True, slots=True)
class Deed:
    label: Any
    consequence: Any
    verb: str
    act: Callable[[Ask, DagRun], object]


#: What can be done to many runs, in the order of the buttons.
DEEDS: Final = {
    "clear": Deed(
        gettext_lazy("Clear"),
        gettext_lazy("All their tasks run again. What runs now is stopped first."),
        "change",
        lambda ask, run: runs.clear_run(ask.actor, run.dag_id, run.run_id, ask.now),
    ),
    "clear_failed": Deed(
        gettext_lazy("Clear failed tasks"),
        gettext_lazy("Their failed tasks, and those that failed for them, run again."),
        "change",
        lambda ask, run: runs.clear_run(ask.actor, run.dag_id, run.run_id, ask.now, only_failed=True),
    ),
    "success": Deed(
        gettext_lazy("Mark as success"),
        gettext_lazy("What runs is stopped and counts as done; what has not begun is skipped."),
        "change",
        lambda ask, run: runs.mark_run(ask.actor, run.dag_id, run.run_id, "success", ask.now),
    ),
    "failed": Deed(
        gettext_lazy("Mark as failed"),
        gettext_lazy("What runs is stopped and counts as failed; what has not begun is skipped."),
        "change",
        lambda ask, run: runs.mark_run(ask.actor, run.dag_id, run.run_id, "failed", ask.now),
    ),
    "delete": Deed(
        gettext_lazy("Delete"),
        gettext_lazy("They are gone for good, with their tasks, tries and XComs. Running ones are left alone."),
        "delete",
        lambda ask, run: runs.delete_run(ask.actor, run.dag_id, run.run_id, ask.now),
    ),
}


@login_required
def form(request: HttpRequest) -> HttpResponse:
    return (_act if request.method == "POST" else _preview)(request)


@page
def _preview(ask: Ask) -> HttpResponse:
    name, chosen = _deed(ask, ask.request.GET)
    rows = _ticked(ask, ask.request.GET)
    more = len(rows) > batches.MOST
    rows = rows[: batches.MOST]
    shown, unnamed = batches.named(rows, NAMED)
    context = {
        "section": "scheduler:runs",
        "do": name,
        "deed": chosen,
        "rows": shown,
        "n": len(rows),
        "more": more,
        "unnamed": unnamed,
        "ids": ",".join(str(row.pk) for row in rows),
        "type_number": len(rows) > batches.ASK_FROM,
        "back": ask.request.GET.get("next", ""),
    }
    return ask.show("run_bulk.html", context)


@deed
def _act(ask: Ask) -> HttpResponse:
    asked = ask.request.POST
    name, chosen = _deed(ask, asked)
    state = batches.read(asked, _runs)
    rows = access.runs(ask.actor).filter(pk__in=batches.keys(batches.next_part(state))).only("dag", "run_id")
    batches.act(
        state,
        {str(run.pk): run for run in rows},
        lambda run: chosen.act(ask, run),
        lambda run: f"{run.dag_id}, {run.run_id}",
    )
    words = batches.Words(str(chosen.label), _runs)
    return batches.answer(ask, state, words, {"do": name}, reverse("scheduler:runs"))


def _runs(n: int) -> str:
    return ngettext("%(n)s run", "%(n)s runs", n) % {"n": n}


def _deed(ask: Ask, asked: Any) -> tuple[str, Deed]:
    name = asked.get("do", "")
    if name not in DEEDS:
        raise Invalid("do", _("“do” must be one of: %(names)s.") % {"names": ", ".join(DEEDS)})
    ask.need(DEEDS[name].verb, "run")
    return name, DEEDS[name]


def _ticked(ask: Ask, asked: Any) -> list[DagRun]:
    """The ticked runs, or those that the filter finds, newest first; one more than ``batches.MOST`` tells of more."""
    if asked.get("all"):
        found = page_runs.matching(access.runs(ask.actor), run_filter.wanted(asked, asked.get("dag", "")))
    else:
        ids = batches.keys(asked.getlist("run"))
        if not ids:
            raise Invalid("run", _("Tick at least one run first."))
        found = access.runs(ask.actor).filter(pk__in=ids)
    return list(found.only("dag", "run_id", "state", "run_after").order_by("-id")[: batches.MOST + 1])
