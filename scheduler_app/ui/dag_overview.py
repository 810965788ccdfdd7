"""Is *this* DAG healthy? Its schedule, its last runs, its tasks, and what is wrong with its file."""

from __future__ import annotations

from django.http import HttpResponse

from scheduler_app import access
from scheduler_app.engine.dag import from_doc
from scheduler_app.models import DagModel
from scheduler_app.queries import page_dag, page_log, page_task, page_why_run

from . import log
from .page import Ask, page

#: Lines of the last failure's log.
TAIL = 12


@page
def show(ask: Ask, dag_id: str) -> HttpResponse:
    dag = ask.dag(dag_id)
    found = page_dag.overview(dag, ask.now)
    document = dag.latest_version.document if dag.latest_version else None
    return ask.show(
        "dag.html",
        {
            "section": "scheduler:dags",
            "tab": "overview",
            "dag": dag,
            "overview": found,
            "spec": from_doc(document) if document else None,
            "why_no_run": page_why_run.why_no_run(dag, ask.now),
            "coming": page_dag.coming(dag, ask.now),
            "tail": _tail(ask, dag, found.last_failure),
        },
    )


def _tail(ask: Ask, dag: DagModel, failed: page_dag.FailedTask | None) -> list[page_log.Line]:
    """The last lines of the log of the last failed task."""
    if failed is None or not ask.can("view", "task"):
        return []
    instance = page_task.get_task(
        access.task_instances(ask.actor), dag.dag_id, failed.run_id, failed.task_id, failed.map_index
    )
    if instance is None:
        return []
    part = page_log.read_part(log.log_of(instance, failed.try_number))
    return part.lines[-TAIL:] if part else []
