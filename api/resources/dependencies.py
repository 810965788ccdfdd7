"""What keeps a task instance from running, by the scheduler's own verdicts."""

from __future__ import annotations

from datetime import timedelta

from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.conf import conf
from scheduler_app.queries import page_why

from .. import params
from ..endpoint import Endpoint
from .task_instances import visible_task

#: Codes of verdicts → the names that Airflow gives to the same conditions; others are named after their code.
NAMES = {
    "trigger_rule": "Trigger Rule",
    "run_state": "Dagrun Running",
    "paused": "Dag Not Paused",
    "state": "Task Instance State",
    "past": "Previous Dagrun State",
    "retry": "Not In Retry Period",
    "reschedule": "Ready To Reschedule",
    "future": "Execution Date",
    "mapping": "Mapped dependencies have succeeded",
    "pool_full": "Pool Slots Available",
    "limit_full": "Limit Available",
    "rate_full": "Rate Available",
    "max_active_tasks": "Dag Max Active Tasks",
    "max_active_tis_per_dag": "Task Concurrency",
    "max_active_tis_per_dagrun": "Task Concurrency",
}


class DependenciesView(Endpoint):
    """Empty for a task instance that runs, has ended, or that nothing keeps back."""

    kind = "task"

    def get(
        self, request: Request, dag_id: str, dag_run_id: str, task_id: str, map_index: str | None = None
    ) -> Response:
        raw = map_index if map_index is not None else request.query_params.get("map_index", "-1")
        index = params.in_path(raw, "map_index")
        row = visible_task(self.actor, dag_id, dag_run_id, task_id, index)
        lease = timedelta(seconds=conf().lease_seconds)
        why = page_why.why_task(row, self.now, lease, access.task_instances(self.actor))
        unmet = [verdict for verdict in why.verdicts if not verdict.ok] if why is not None else []
        return Response(
            {
                "dependencies": [
                    {
                        "name": NAMES.get(verdict.code, verdict.code.replace("_", " ").capitalize()),
                        "reason": verdict.text,
                    }
                    for verdict in unmet
                ]
            }
        )
