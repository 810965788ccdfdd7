"""Trigger a run: a form made from the DAG's params, or raw JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from scheduler_app import access
from scheduler_app.actions import pause, trigger
from scheduler_app.actions.errors import ActionError, Forbidden
from scheduler_app.engine import params
from scheduler_app.models import DagModel
from scheduler_app.queries import page_run

from . import trigger_form
from .page import Ask, deed, local_moment, page


@login_required
def form(request: HttpRequest, dag_id: str) -> HttpResponse:
    return (_post if request.method == "POST" else _get)(request, dag_id=dag_id)


@page
def _get(ask: Ask, dag_id: str) -> HttpResponse:
    ask.need("add", "run")
    dag = ask.dag(dag_id)
    return _show(ask, dag, trigger_form.fields(_params(dag), _prefill(ask, dag_id)), {}, {})


@deed
def _post(ask: Ask, dag_id: str) -> HttpResponse:
    ask.need("add", "run")
    dag = ask.dag(dag_id)
    declared = _params(dag)
    fields = trigger_form.fields(declared)
    posted = dict(ask.request.POST.lists())
    conf, errors = _conf(fields, posted)
    when, problem = local_moment(ask.request.POST.get("logical_date", ""))
    if problem:
        errors["logical_date"] = problem
    if not errors:
        errors = params.resolve(declared, conf).errors
    if not errors:
        try:
            return _trigger(ask, dag, conf, when)
        except Forbidden:
            raise
        except ActionError as error:
            errors = {"": str(error)}
    shown = trigger_form.fields(declared, conf) if ask.request.POST.get("conf") else trigger_form.typed(fields, posted)
    return _show(ask, dag, shown, errors, ask.request.POST)


def _trigger(ask: Ask, dag: DagModel, conf: dict[str, Any], when: datetime | None) -> HttpResponse:
    asked = ask.request.POST
    run = trigger.trigger_run(
        ask.actor,
        dag.dag_id,
        ask.now,
        run_id=asked.get("run_id", "").strip() or None,
        logical_date=when,
        conf=conf,
        note=asked.get("note", "").strip() or None,
    )
    if asked.get("unpause") and dag.is_paused:
        pause.set_paused(ask.actor, dag.dag_id, False, ask.now)
    messages.success(ask.request, _("Triggered."))
    return redirect("scheduler:run", dag_id=dag.dag_id, run_id=run.run_id)


def _show(
    ask: Ask, dag: DagModel, fields: list[trigger_form.Field], errors: dict[str, str], posted: Any
) -> HttpResponse:
    known = {one.name for one in fields} | {"logical_date"}
    context = {
        "section": "scheduler:dags",
        "dag": dag,
        "sections": trigger_form.sections(fields),
        "has_params": bool(fields),
        "errors": errors,
        "other_errors": [text for name, text in errors.items() if name not in known],
        "posted": posted,
        "raw": (posted or {}).get("conf", ""),
    }
    return ask.show("trigger.html", context, status=400 if errors else 200)


def _params(dag: DagModel) -> dict[str, Any]:
    """The declared params in the order of the file."""
    document = dag.latest_version.document if dag.latest_version else {}
    declared = document.get("params") or {}
    order = {name: place for place, name in enumerate(document.get("param_order", ()))}
    return dict(sorted(declared.items(), key=lambda item: order.get(item[0], len(order))))


def _prefill(ask: Ask, dag_id: str) -> dict[str, Any]:
    """Values from the run named by ``?from=``, and from ``?param.name=text`` (so that a filled form can be shared)."""
    values: dict[str, Any] = {}
    if ask.request.GET.get("from") and ask.can("view", "run"):
        run = page_run.get_run(access.runs(ask.actor), dag_id, ask.request.GET["from"])
        values |= (run.conf or {}) if run else {}
    for key, text in ask.request.GET.items():
        if key.startswith("param."):
            values[key.removeprefix("param.")] = text
    return values


def _conf(fields: list[trigger_form.Field], posted: dict[str, list[str]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Raw JSON goes before the fields."""
    raw = (posted.get("conf") or [""])[0].strip()
    return trigger_form.read_conf(raw) if raw else trigger_form.read(fields, posted)
