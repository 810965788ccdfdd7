"""Make a backfill: which slots it would run is shown first, and it is made only if they are the same then."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler_app.actions import backfills
from scheduler_app.actions.backfills import Wanted
from scheduler_app.actions.errors import ActionError, Conflict, Forbidden, Invalid, Unlisted
from scheduler_app.engine.run_plans import RunPlan
from scheduler_app.models import DagModel

from . import trigger_form
from .page import Ask, deed, local_moment, page

#: Slots that the preview names.
NAMED: Final = 50
REPROCESS: Final = (
    ("none", gettext_lazy("Leave them alone")),
    ("failed", gettext_lazy("Run the failed ones again")),
    ("completed", gettext_lazy("Run all again that are over")),
)
#: Fields that the preview hands on to the deed.
_KEPT: Final = ("from", "to", "reprocess", "most", "reverse", "newest", "conf", "why")
#: fields of an action's error → fields of the form
_FIELDS: Final = {"from_date": "from", "to_date": "to", "run_backwards": "reverse", "max_active_runs": "most"}


@dataclass
class Form:
    """What was typed, and what is wrong with it by the name of the field ("" for the whole)."""

    asked: Any
    wanted: Wanted | None = None
    plans: list[RunPlan] | None = None
    #: why nobody can say its slots before it is made
    unlisted: str | None = None
    errors: dict[str, str] = field(default_factory=dict)


@login_required
def form(request: HttpRequest, dag_id: str) -> HttpResponse:
    return (_post if request.method == "POST" else _get)(request, dag_id=dag_id)


@page
def _get(ask: Ask, dag_id: str) -> HttpResponse:
    ask.need("add", "run")
    dag = ask.dag(dag_id)
    asked = ask.request.GET
    found = _previewed(ask, dag, asked) if "from" in asked else Form(asked)
    return _show(ask, dag, found)


@deed
def _post(ask: Ask, dag_id: str) -> HttpResponse:
    ask.need("add", "run")
    dag = ask.dag(dag_id)
    asked = ask.request.POST
    found = _previewed(ask, dag, asked)
    if found.wanted is None or (found.plans is None and not found.unlisted):
        return _show(ask, dag, found)
    try:
        if asked.get("expect") != ("unlisted" if found.plans is None else str(len(found.plans))):
            raise Conflict(_("Which slots would run changed since the preview. Look at them again."))
        reason = asked.get("why", "").strip() or None
        row = backfills.create(ask.actor, found.wanted, ask.now, reason=reason)
    except Forbidden:
        raise
    except ActionError as error:
        found.errors[""] = str(error)
        return _show(ask, dag, found)
    if found.plans is None:
        messages.success(ask.request, _("The backfill is made: the timetable's class is asked for its slots now."))
        return redirect("scheduler:backfill", backfill_id=row.pk)
    text = ngettext("The backfill of %(n)s slot has begun.", "The backfill of %(n)s slots has begun.", len(found.plans))
    messages.success(ask.request, text % {"n": len(found.plans)})
    return redirect("scheduler:backfill", backfill_id=row.pk)


def _previewed(ask: Ask, dag: DagModel, asked: Any) -> Form:
    """The form with its slots, or with what is wrong."""
    found = Form(asked)
    found.wanted = _wanted(dag, asked, found.errors)
    if found.wanted is None:
        return found
    try:
        found.plans = backfills.preview(ask.actor, found.wanted, ask.now)
    except Forbidden:
        raise
    except Unlisted as error:
        found.unlisted = str(error)
    except Invalid as error:
        found.errors[_FIELDS.get(error.field, "")] = str(error)
    except ActionError as error:
        found.errors[""] = str(error)
    return found


def _wanted(dag: DagModel, asked: Any, errors: dict[str, str]) -> Wanted | None:
    since, until = _moment(asked, "from", errors), _moment(asked, "to", errors)
    conf, wrong = trigger_form.read_conf(asked.get("conf", "").strip())
    errors |= wrong
    most = asked.get("most", "10").strip()
    if not most.isdecimal() or not 1 <= int(most[:9]) < 2**31:
        errors["most"] = _("A number from 1 on.")
    if errors or since is None or until is None:
        return None
    return Wanted(
        dag.dag_id,
        since,
        until,
        reprocess_behavior=asked.get("reprocess", "none"),
        reverse=bool(asked.get("reverse")),
        max_active_runs=int(most),
        conf=conf,
        run_on_latest_version=True if asked.get("newest") else None,
    )


def _moment(asked: Any, name: str, errors: dict[str, str]) -> datetime | None:
    moment, problem = local_moment(asked.get(name, ""))
    if moment is None:
        errors[name] = problem or _("Say when.")
    return moment


def _show(ask: Ask, dag: DagModel, found: Form) -> HttpResponse:
    plans = found.plans
    known = {"from", "to", "most", "conf", "reverse"}
    context = {
        "section": "scheduler:dags",
        "dag": dag,
        "asked": found.asked,
        "errors": found.errors,
        "other_errors": [text for name, text in found.errors.items() if name not in known],
        "reprocess": REPROCESS,
        "kept": [(name, found.asked[name]) for name in _KEPT if found.asked.get(name)],
        "unlisted": found.unlisted,
        "plans": None if plans is None else plans[:NAMED],
        "n": len(plans or ()),
        "more": max(0, len(plans or ()) - NAMED),
    }
    return ask.show("backfill_form.html", context, status=400 if found.errors else 200)
