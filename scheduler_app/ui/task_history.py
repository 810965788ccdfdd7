"""Is this task flaky? One task over the runs of its DAG."""

from __future__ import annotations

from typing import Final

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _

from scheduler_app.engine.dag import from_doc
from scheduler_app.queries import page_task_history
from scheduler_app.queries.page_dags import Bar
from scheduler_app.queries.page_task_history import Past

from .page import Ask, page
from .worst import worst

#: Choices for the number of runs.
COUNTS: Final = (30, 100, 365)


@page
def show(ask: Ask, dag_id: str, task_id: str) -> HttpResponse:
    ask.need("view", "task")
    dag = ask.dag(dag_id)
    asked = ask.request.GET.get("runs", "")
    count = int(asked) if asked in {str(one) for one in COUNTS} else COUNTS[0]
    found = page_task_history.past(dag_id, task_id, count, ask.now)
    spec = from_doc(dag.latest_version.document) if dag.latest_version else None
    task = spec.task_dict.get(task_id) if spec else None
    if task is None and not found:
        raise Http404(_("%(dag)s has no task “%(task)s”.") % {"dag": dag_id, "task": task_id})
    context = {
        "section": "scheduler:dags",
        "dag": dag,
        "task_id": task_id,
        "task": task,
        "bars": bars(found),
        "habits": page_task_history.habits(found),
        "failures": page_task_history.failures(found, task_id),
        "counts": COUNTS,
        "count": count,
    }
    return ask.show("dag_task.html", context)


def bars(found: list[Past]) -> list[Bar]:
    """One a run: its height is the longest instance's duration, its state the worst one."""
    longest = max((one.seconds for one in found if one.seconds), default=0.0) or 1.0
    return [
        Bar(one.run_id, worst(one.tally), "", one.run_after, one.seconds, (one.seconds or 0.0) / longest)
        for one in found
    ]
