"""Tasks as a DAG's newest version defines them, and the links of a task instance."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app.actions.selection import graph_for
from scheduler_app.engine.dag import Task
from scheduler_app.engine.graph import Graph

from .. import errors, params
from ..endpoint import Endpoint
from ..render import time_delta
from .dags import visible
from .task_instances import visible_task

#: ``order_by`` → how a task is compared; tasks without a value come last
ORDER = {
    "task_id": lambda task: task.task_id,
    "task_display_name": lambda task: task.task_display_name or task.task_id,
    "owner": lambda task: task.owner,
    "start_date": lambda task: task.start_date or "",
    "trigger_rule": lambda task: task.trigger_rule,
    "operator_name": lambda task: task.shown_operator,
    "queue": lambda task: task.queue,
    "pool": lambda task: task.pool,
    "retries": lambda task: task.retries,
    "priority_weight": lambda task: task.priority_weight,
}


def document(task: Task, graph: Graph) -> dict[str, Any]:
    """``TaskResponse``."""
    return {
        "task_id": task.task_id,
        "task_display_name": task.task_display_name or task.task_id,
        "owner": task.owner,
        "start_date": task.start_date or graph.dag.start_date,
        "end_date": task.end_date or graph.dag.end_date,
        "trigger_rule": task.trigger_rule,
        "depends_on_past": task.depends_on_past,
        "wait_for_downstream": task.wait_for_downstream,
        "retries": task.retries,
        "queue": task.queue,
        "pool": task.pool,
        "pool_slots": task.pool_slots,
        "execution_timeout": time_delta(task.execution_timeout),
        "retry_delay": time_delta(task.retry_delay),
        "retry_exponential_backoff": task.retry_exponential_backoff,
        "priority_weight": task.priority_weight,
        "weight_rule": task.weight_rule,
        "ui_color": task.ui_color,
        "ui_fgcolor": task.ui_fgcolor,
        "template_fields": list(task.template_fields),
        "downstream_task_ids": sorted(task.downstream),
        "doc_md": task.doc_md,
        "operator_name": task.shown_operator,
        "params": {},
        "class_ref": {"class_name": task.operator_name, "module_path": task.operator_module},
        "is_mapped": task.mapped is not None,
        "extra_links": list(task.extra_links),
    }


class TasksView(Endpoint):
    kind = "dag"

    def get(self, request: Request, dag_id: str) -> Response:
        graph = _graph(self, dag_id)
        name = request.query_params.get("order_by", "task_id")
        key = ORDER.get(name.removeprefix("-"))
        if key is None:
            raise errors.Problem(
                400, f"Ordering with '{name}' is not possible. Use one of: {', '.join(sorted(ORDER))}."
            )
        tasks = sorted(graph.tasks.values(), key=lambda task: (key(task), task.task_id), reverse=name.startswith("-"))
        return Response({"tasks": [document(task, graph) for task in tasks], "total_entries": len(tasks)})


class TaskView(Endpoint):
    kind = "dag"

    def get(self, request: Request, dag_id: str, task_id: str) -> Response:
        graph = _graph(self, dag_id)
        if task_id not in graph.tasks:
            raise errors.Problem(404, f"Task with id {task_id} was not found")
        return Response(document(graph.tasks[task_id], graph))


class LinksView(Endpoint):
    """The extra links that an operator names; what they lead to only its own code could say, so they are null."""

    kind = "task"

    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str) -> Response:
        index = params.get(request.query_params, "map_index", params.whole, -1)
        row = visible_task(self.actor, dag_id, dag_run_id, task_id, index)
        task = _graph(self, row.dag_id).tasks.get(task_id)
        links = dict.fromkeys(task.extra_links if task else ())
        return Response({"extra_links": links, "total_entries": len(links)})


def _graph(view: Endpoint, dag_id: str) -> Graph:
    graph = graph_for(visible(view.actor, dag_id))
    if graph is None:
        raise errors.Problem(404, f"Dag with id {dag_id} was not found: no version of it is stored yet.")
    return graph
