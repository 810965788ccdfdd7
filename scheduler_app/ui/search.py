"""Find it, or do it: DAGs, tasks, runs, pages and actions by a few letters. ``Ctrl K`` shows the same in a dialog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from scheduler_app import access
from scheduler_app.queries import page_search
from scheduler_app.queries.page_search import DagHit

from .page import NAVIGATION, Ask, page

MOST: Final = 20
LONGEST: Final = 100
#: DAGs that actions are offered for.
ACTED_ON: Final = 2
#: What a line may begin with → the action that it asks for. They are words of commands: not translated.
VERBS: Final = {
    "pause": "pause",
    "resume": "resume",
    "unpause": "resume",
    "trigger": "trigger",
    "clear": "clear",
}


@dataclass(frozen=True, slots=True)
class Hit:
    """One row: a link, or a button that posts ``value`` as ``paused``."""

    kind: str
    label: str
    url: str
    detail: str = ""
    state: str | None = None
    value: str = ""


@page
def show(ask: Ask) -> HttpResponse:
    text = " ".join(ask.request.GET.get("q", "").split())[:LONGEST]
    verb, rest = verb_of(text)
    found = hits(ask, verb, rest if verb else text)
    return ask.show("search.html", {"section": "scheduler:search", "q": text, "hits": found[:MOST]})


def verb_of(text: str) -> tuple[str, str]:
    """("pause", "sales") of "pause sales"; ("", text) of what begins with no verb, or is nothing but one."""
    first, _space, rest = text.partition(" ")
    verb = VERBS.get(first.lower(), "")
    return (verb, rest) if rest else ("", text)


def hits(ask: Ask, verb: str, text: str) -> list[Hit]:
    """Everything that fits, the actions first where one was asked for. At most two queries."""
    dags: list[DagHit] = []
    tasks: list[page_search.TaskHit] = []
    if text and ask.can("view", "dag"):
        dags, tasks = page_search.dags_and_tasks(access.dags(ask.actor), text)
    doable = [hit for dag in (dags if verb else dags[:ACTED_ON]) for hit in _actions(ask, dag, verb)]
    if verb:
        return doable
    runs = page_search.runs(access.runs(ask.actor), text) if ask.can("view", "run") else []
    return [
        *(Hit("dag", dag.name, reverse("scheduler:dag", args=[dag.dag_id]), state=dag.latest_state) for dag in dags),
        *(_task(one) for one in tasks if ask.can("view", "task")),
        *(_run(one) for one in runs),
        *_pages(ask, text),
        *doable,
    ]


def _task(hit: page_search.TaskHit) -> Hit:
    if hit.run_id is None:
        return Hit("task", hit.task_id, reverse("scheduler:graph", args=[hit.dag_id]), hit.dag_id)
    return Hit("task", hit.task_id, reverse("scheduler:task", args=[hit.dag_id, hit.run_id, hit.task_id]), hit.dag_id)


def _run(hit: page_search.RunHit) -> Hit:
    return Hit("run", hit.run_id, reverse("scheduler:run", args=[hit.dag_id, hit.run_id]), hit.dag_id, hit.state)


def _pages(ask: Ask, text: str) -> list[Hit]:
    known = [(_("Start"), "scheduler:home")]
    known += [(str(label), route) for route, label, kind in NAVIGATION if ask.can("view", kind)]
    return [Hit("page", label, reverse(route)) for label, route in known if text.lower() in label.lower()]


def _actions(ask: Ask, dag: DagHit, verb: str) -> list[Hit]:
    """What the reader may do to a DAG: all of it, or what the verb says."""
    found = []
    if ask.can("add", "run"):
        text = _("Trigger %(dag)s…") % {"dag": dag.dag_id}
        found.append(("trigger", Hit("action", text, reverse("scheduler:trigger", args=[dag.dag_id]))))
    if ask.can("change", "dag"):
        url = reverse("scheduler:dag_pause", args=[dag.dag_id])
        name, text = ("resume", _("Resume %(dag)s")) if dag.is_paused else ("pause", _("Pause %(dag)s"))
        found.append((name, Hit("action", text % {"dag": dag.dag_id}, url, value="no" if dag.is_paused else "yes")))
    if ask.can("change", "task") and dag.latest_run_id:
        url = f"{reverse('scheduler:clear', args=[dag.dag_id])}?{urlencode({'run': dag.latest_run_id})}"
        text = _("Clear the last run of %(dag)s…") % {"dag": dag.dag_id}
        found.append(("clear", Hit("action", text, url, dag.latest_run_id, dag.latest_state)))
    return [hit for name, hit in found if not verb or name == verb]
