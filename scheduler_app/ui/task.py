"""Why? One task instance: its state, its tries, its log, what it pushed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _

from scheduler_app import access
from scheduler_app.engine import states
from scheduler_app.models import TaskInstance
from scheduler_app.models.graphs import graph_of
from scheduler_app.queries import page_log, page_questions, page_task, page_why

from . import log, trigger_form
from .jobs import lease
from .page import Ask, page

TABS = ("log", "xcom", "rendered", "details")
#: Columns that the details tab lists under their own names.
DETAILS = (
    "id", "task_id", "map_index", "state", "moved_by", "try_number", "max_tries", "operator_name", "pool", "pool_slots",
    "queue", "executor", "priority_weight", "scheduled_when", "queued_when", "handed_out_at", "first_start_date",
    "start_date", "end_date", "next_at", "hostname", "unixname", "pid", "heartbeat_at", "fence", "lost_hand_outs",
    "external_executor_id", "map_length", "trigger_id", "trigger_timeout", "next_method", "dag_version_id",
)  # fmt: skip


def find(ask: Ask, dag_id: str, run_id: str, task_id: str, map_index: int | None) -> TaskInstance:
    """The task instance that an address names. Raises Http404."""
    ask.need("view", "task")
    found = page_task.get_task(access.task_instances(ask.actor), dag_id, run_id, task_id, map_index)
    if found is None:
        raise Http404(
            _("The run “%(run)s” has no task “%(task)s”, or you may not see it.") % {"run": run_id, "task": task_id}
        )
    return found


@page
def show(ask: Ask, dag_id: str, run_id: str, task_id: str, map_index: int | None = None) -> HttpResponse:
    instance = find(ask, dag_id, run_id, task_id, map_index)
    token = page_task.pulse(access.task_instances(ask.actor), instance.pk)
    if instance.state in states.UNFINISHED:
        # once more, after the token: a change that came in between is shown, or found by the first poll
        instance = find(ask, dag_id, run_id, task_id, map_index)
    tab = ask.request.GET.get("tab", "log")
    tries = page_task.tries(instance)
    chosen = chosen_try(ask, tries)
    context: dict[str, Any] = {
        "section": "scheduler:runs",
        "dag": instance.dag_run.dag,
        "run": instance.dag_run,
        "ti": instance,
        "token": token,
        "unfinished": instance.state in states.UNFINISHED,
        "tab": tab if tab in TABS else "log",
        "tries": tries,
        "try": chosen,
        "siblings": page_task.mapped_indexes(instance) if instance.map_index >= 0 else [],
        "neighbours": _neighbours(instance),
        "why": page_why.why_task(instance, ask.now, lease(), access.task_instances(ask.actor)),
    }
    question = page_questions.of_task(instance)
    context |= {"question": question, "fields": trigger_form.fields(question.params) if question else []}
    if context["tab"] == "log":
        context |= log_context(ask, instance, chosen)
    elif context["tab"] == "xcom" and ask.can("view", "xcom"):
        context["pushed"] = page_task.pushed(instance)
    elif context["tab"] == "details":
        context["details"] = [(name, getattr(instance, name)) for name in DETAILS]
    elif context["tab"] == "rendered":
        context["rendered"] = page_task.rendered(instance)
    return ask.show("task.html", context)


def chosen_try(ask: Ask, tries: list[page_task.Try]) -> page_task.Try | None:
    """The try that ``?try=`` asks for, clamped to those that exist; the newest by default."""
    if not tries:
        return None
    wanted = ask.request.GET.get("try", "")
    number = int(wanted) if wanted.isdecimal() and len(wanted) < 9 else tries[-1].number
    return min(tries, key=lambda one: (abs(one.number - number), -one.number))


def log_context(ask: Ask, instance: TaskInstance, chosen: page_task.Try | None) -> dict[str, Any]:
    """The part of the log that the address asks for: the end, from a byte on, or before one."""
    part = None
    if chosen is not None:
        start, end = log.offset(ask, "from"), log.offset(ask, "before")
        part = page_log.read_part(log.log_of(instance, chosen.number), start=start, end=end)
    level = ask.request.GET.get("level", "")
    return {
        "part": part,
        "levels": page_log.LEVELS[1:-1],
        "level": level if level in page_log.LEVELS else "",
        "lines": log.at_least(part.lines, level) if part else [],
        "follows": bool(chosen and chosen.current and instance.state in states.WITH_PROCESS),
        "why_no_log": "" if part else why_no_log(instance, chosen, ask.now),
    }


def why_no_log(instance: TaskInstance, chosen: page_task.Try | None, now: datetime) -> str:
    """A sentence in place of a log that is not there."""
    if chosen is None:
        if instance.state in ("skipped", "upstream_failed", "removed"):
            return _("This task never ran, so it has no log. %(reason)s") % {"reason": instance.reason or ""}
        return _("This task has not started yet, so it has no log.")
    if chosen.start is None:
        return _("This try ended before its code began, so it wrote nothing. %(reason)s") % {
            "reason": chosen.reason or ""
        }
    if chosen.end is None and now - chosen.start < timedelta(seconds=10):
        return _("The task has just started and wrote nothing yet.")
    if instance.operator_name == "EmptyOperator":
        return _("This task has nothing to execute, so it wrote no log.")
    return _("The log file is not on this machine. It may have been cleaned up, or lie on %(host)s.") % {
        "host": chosen.hostname or _("the worker")
    }


def _neighbours(instance: TaskInstance) -> dict[str, list[page_task.Neighbour]]:
    """The tasks right before and after, with their states."""
    version = instance.dag_version_id or instance.dag_run.dag_version_id
    graph = graph_of(version) if version else None
    if graph is None or instance.task_id not in graph.tasks:
        return {"upstream": [], "downstream": []}
    above, below = graph.upstream[instance.task_id], graph.downstream[instance.task_id]
    found = {one.task_id: one for one in page_task.neighbours(instance.dag_run, [*above, *below])}
    return {
        "upstream": [found[task_id] for task_id in above if task_id in found],
        "downstream": [found[task_id] for task_id in below if task_id in found],
    }
