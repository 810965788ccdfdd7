"""Clear, mark or delete many runs: ticked ones, or all that match the list's filter. First what it is about, then the
deed, run by run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler_app import access
from scheduler_app.actions import runs
from scheduler_app.actions.errors import ActionError, Invalid
from scheduler_app.models import DagRun
from scheduler_app.queries import page_runs

from .page import Ask, back, deed, page

#: Runs that one deed takes; of more the newest.
MOST: Final = 1_000
#: Beyond so many the person types how many it is about.
ASK_FROM: Final = 500
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
    more = len(rows) > MOST
    rows = rows[:MOST]
    context = {
        "section": "scheduler:runs",
        "do": name,
        "deed": chosen,
        "rows": rows[:NAMED],
        "n": len(rows),
        "more": more,
        "unnamed": max(0, len(rows) - NAMED),
        "ids": ",".join(str(row.pk) for row in rows),
        "type_number": len(rows) > ASK_FROM,
        "back": ask.request.GET.get("next", ""),
    }
    return ask.show("run_bulk.html", context)


@deed
def _act(ask: Ask) -> HttpResponse:
    asked = ask.request.POST
    _name, chosen = _deed(ask, asked)
    wanted = {int(part) for part in asked.get("ids", "").split(",") if part.isdecimal() and len(part) < 19}
    if len(wanted) > MOST:
        raise Invalid("ids", _("At most %(n)s runs at once.") % {"n": MOST})
    if len(wanted) > ASK_FROM and asked.get("number", "").strip() != str(len(wanted)):
        raise Invalid("number", _("That is about %(n)s runs: type that number to do it.") % {"n": len(wanted)})
    done, refused = 0, []
    for run in access.runs(ask.actor).filter(pk__in=wanted).only("dag", "run_id").order_by("pk"):
        try:
            chosen.act(ask, run)
            done += 1
        except ActionError as error:  # one that cannot keeps no other from it
            refused.append(f"{run.dag_id}, {run.run_id}: {error}")
    text = ngettext("%(deed)s: done for %(n)s run.", "%(deed)s: done for %(n)s runs.", done)
    messages.success(ask.request, text % {"deed": chosen.label, "n": done})
    left = len(wanted) - done
    if left:
        text = ngettext("%(n)s run was left alone.", "%(n)s runs were left alone.", left) % {"n": left}
        messages.error(ask.request, " ".join([text, *refused[:3]]))
    return back(ask, reverse("scheduler:runs"))


def _deed(ask: Ask, asked: Any) -> tuple[str, Deed]:
    name = asked.get("do", "")
    if name not in DEEDS:
        raise Invalid("do", _("“do” must be one of: %(names)s.") % {"names": ", ".join(DEEDS)})
    ask.need(DEEDS[name].verb, "run")
    return name, DEEDS[name]


def _ticked(ask: Ask, asked: Any) -> list[DagRun]:
    """The ticked runs, or those that the filter finds, newest first; one more than :data:`MOST` tells of more."""
    if asked.get("all"):
        found = page_runs.matching(
            access.runs(ask.actor),
            dag_id=asked.get("dag", ""),
            text=asked.get("q", ""),
            state=asked.get("state", ""),
            run_type=asked.get("type", ""),
        )
    else:
        ids = [int(part) for part in asked.getlist("run") if part.isdecimal() and len(part) < 19]
        if not ids:
            raise Invalid("run", _("Tick at least one run first."))
        found = access.runs(ask.actor).filter(pk__in=ids)
    return list(found.only("dag", "run_id", "state", "run_after").order_by("-id")[: MOST + 1])
